"""What several kinds of claims share: choosing rows, and naming them."""

from __future__ import annotations

from analysis.claims.finding import Quantity
from analysis.comparison import Comparison, Row, compared
from analysis.hypothesis_tests import Decision
from analysis.results import Results
from analysis.settings import STATES
from core import rope

TRAINED = dict(STATES)[True]


def papers_own(results: Results, rows: Comparison, factor: float) -> Row | None:
    """DPRoPE as the paper uses it: at the model's n̂, or at t = 0 if that was not measured."""
    n_hat = results.model.n_hat.get(factor)
    return rows.find(rope.OURS, {"n_hat": n_hat}, factor) or rows.find(rope.OURS, {}, factor)


def measured(results: Results, experiment: str) -> list[tuple[str, Comparison]]:
    """The states that have records, with their rows: fine-tuned first, then without training."""
    found = ((state, compared(results, experiment, trained)) for trained, state in reversed(STATES))
    return [(state, rows) for state, rows in found if rows]


def factors(rows: Comparison) -> list[float]:
    """The scaling factors of DPRoPE's rows."""
    return sorted({row.setting.factor for row in rows.rows if row.setting.method == rope.OURS})


def decided(name: str, decision: Decision, digits: int = 2, unit: str = "") -> Quantity:
    """The number that was decided on, with its interval at the decision's level."""
    return Quantity(name, decision.interval, digits, unit, signed=True)


def called(row: Row) -> str:
    """A row's name, and whether it was fine-tuned and with how many seeds."""
    if row.setting.method == rope.ORIGINAL:
        return row.setting.name
    seeds = len(row.runs)
    tuned = "fine-tuned, one seed" if seeds == 1 else f"fine-tuned, {seeds} seeds"
    return f"{row.setting.name} ({tuned if row.trained else 'without training'})"


def told(state: str, decisions: list[Decision]) -> str:
    """A state in words, with its number of training seeds and what the intervals do not cover."""
    estimates = [decision.estimate for decision in decisions]
    seeds = min((estimate.seeds for estimate in estimates), default=1)
    if state != TRAINED:
        return state
    if seeds == 1:
        known = any(estimate.over_seeds for estimate in estimates)
        spread = "taken from the settings with several" if known else "not known"
        return f"{state} with one seed; the spread over seeds is {spread}"
    fixed = any(estimate.samples is None for estimate in estimates)
    return f"{state} with {seeds} seeds" + ("; the intervals are of these samples alone" if fixed else "")
