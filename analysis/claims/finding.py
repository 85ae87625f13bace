"""What a test of a claim finds: numbers with their intervals, what each decides, and the verdict that follows.

The tests share how they choose rows and name them.

A claim may consist of several statements, about several rivals, factors or lengths. It does not hold if one statement
does not, it holds if all do, and it is not decided otherwise. What could not have come out otherwise decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.comparison import Comparison, Row, compared
from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED, Decision
from analysis.results import Model, Results
from analysis.scores import Score
from analysis.settings import STATES, seed_count
from core import rope

EXACT, CERTAIN, NONE = "reproduced exactly", "true by construction", "not tested here"
VERDICTS = (EXACT, REPRODUCED, CONTRADICTED, UNDECIDED, CERTAIN, NONE)
TRAINED = dict(STATES)[True]


@dataclass(frozen=True)
class Quantity:
    """A number of a finding.

    Attributes:
        name: what the number measures.
        score: the number, with its interval if it has one.
        digits: decimals to print.
        unit: may be empty.
        signed: whether it is a difference.
    """

    name: str
    score: Score
    digits: int = 2
    unit: str = ""
    signed: bool = False


@dataclass(frozen=True)
class Fact:
    """Numbers that belong together.

    Attributes:
        quantities: the numbers; with a decision, the last one is the number that is decided on.
        factor: s; None if there is none.
        metric: the metric of the numbers.
        decision: the decision on a number that has an interval.
        stated: the verdict on computed numbers, which have no interval; empty if the fact decides nothing.
    """

    quantities: tuple[Quantity, ...]
    factor: float | None = None
    metric: str = ""
    decision: Decision | None = None
    stated: str = ""

    @property
    def verdict(self) -> str:
        """The verdict; empty if the fact decides nothing."""
        return self.decision.verdict if self.decision else self.stated


@dataclass(frozen=True)
class Finding:
    """What was measured of one model.

    Attributes:
        model: the model of the records; None if no model has any.
        verdict: one of VERDICTS.
        facts: the numbers.
        about: what the numbers are, and of which models.
        family: what is decided together and corrected by Holm, as (count, name); empty for a single decision.
        margin: for a claim of no effect, the difference up to which there is none, named by its origin.
    """

    model: Model | None
    verdict: str
    facts: tuple[Fact, ...] = ()
    about: str = ""
    family: tuple[tuple[int, str], ...] = ()
    margin: Quantity | None = None


Test = Callable[[Results], Finding | None]  # the finding on a model; None if nothing was measured


def concluded(
    model: Model, facts: Sequence[Fact], about: str = "", margin: Quantity | None = None, **family: int
) -> Finding | None:
    """The finding of some facts; None if there are none.

    Args:
        family: how many rivals, factors, … are decided together.
    """
    if not facts:
        return None
    several = tuple((count, name) for name, count in family.items() if count > 1)
    verdict = overall([fact.verdict for fact in facts if fact.verdict])
    return Finding(model, verdict, tuple(facts), about, several, margin)


def overall(verdicts: Sequence[str]) -> str:
    """One verdict for several: that no statement holds if one does not, else the weakest of them."""
    return next(verdict for verdict in (CONTRADICTED, UNDECIDED, REPRODUCED, EXACT, CERTAIN) if verdict in verdicts)


def papers_own(results: Results, rows: Comparison) -> dict[float, Row]:
    """DPRoPE as the paper's experiments use it, by factor: at its n̂, 5/8 of d at s = 2 and 1/2 at s = 4."""
    own = {factor: rows.find(rope.PROPOSED, {"n_hat": n_hat}, factor) for factor, n_hat in results.model.n_hat.items()}
    return {factor: row for factor, row in sorted(own.items()) if row}


def measured(results: Results, experiment: str) -> list[tuple[str, Comparison]]:
    """The states that have records, with their rows: fine-tuned first, then without training."""
    by_state = ((state, compared(results, experiment, trained)) for trained, state in reversed(STATES))
    return [(state, rows) for state, rows in by_state if rows]


def decided(name: str, decision: Decision, digits: int = 2, unit: str = "") -> Quantity:
    """The number that was decided on, with its interval at the decision's level."""
    return Quantity(name, decision.interval, digits, unit, signed=True)


def called(row: Row) -> str:
    """A row's name, and whether it was fine-tuned and with how many seeds."""
    if row.setting.method == rope.ORIGINAL:
        return row.setting.name
    state = f"{TRAINED}, {seed_count(len(row.runs))}" if row.trained else dict(STATES)[False]
    return f"{row.setting.name} ({state})"


UNITS = {
    "perplexity": "text",
    "open_llm": "document",
    "longbench_e": "task mean",
    "ruler": "task mean",
    "passkey": "prompt",
}


def told(state: str, decisions: list[Decision], experiment: str, seeds: int | None = None) -> str:
    """The training, and how many seeds and samples there are of it; by default the seeds of the decisions."""
    estimates = [decision.estimate for decision in decisions]
    seeds = seeds or min((estimate.seeds for estimate in estimates), default=1)
    counts = sorted({estimate.samples for estimate in estimates if estimate.samples})
    parts = [state if state != TRAINED else f"{state}, {seed_count(seeds)}"]
    if counts:
        many = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        parts.append(f"{many} {UNITS[experiment]}{'s' * (counts[-1] > 1)}")
    return ", ".join(parts)
