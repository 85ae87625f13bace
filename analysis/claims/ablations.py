"""DPRoPE at each value of one option: where the score falls, and where the option makes no difference.

"No difference" is decided within a margin: the spread of the paper's own numbers over the values for which the paper
claims that there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis import published, row_differences
from analysis.claims.finding import Fact, Finding, Quantity, Test, concluded, decided, told
from analysis.comparison import Metrics, Row, ablations, compared
from analysis.hypothesis_tests import BELOW, Region, decide, within
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import SYMBOLS
from core import rope

INTERVALS = rope.method_options(rope.PROPOSED)["intervals"]  # b, the paper's own
EXCESS = 720.0  # the b at which LongBench-E falls in the paper

Statement = tuple[Region, float | None]  # for a value: the region of its difference, and the paper's difference


def least_is_below(values: list[float], printed: dict[float, float]) -> dict[float, Statement]:
    """The score at the least value is below that at the reference."""
    return {min(values): (BELOW, printed[min(printed)] - printed[max(printed)])}


def alike(values: list[float], printed: dict[float, float]) -> dict[float, Statement]:
    """The score at every value equals that at the reference, within the spread of the paper's own numbers."""
    return {value: (within(max(printed.values()) - min(printed.values())), 0.0) for value in values}


def alike_but_excess(values: list[float], printed: dict[float, float]) -> dict[float, Statement]:
    """The score at b = EXCESS is below that at the reference; at every other b it is equal, as in :func:`alike`."""
    kept = alike([v for v in values if v != EXCESS], {v: score for v, score in printed.items() if v != EXCESS})
    fall = printed[EXCESS] - printed[INTERVALS]
    return kept | {value: (BELOW, fall) for value in values if value == EXCESS}


def ablated(
    experiment: str,
    metrics: Metrics,
    option: str,
    state: Callable[[list[float], dict[float, float]], dict[float, Statement]],
) -> Test:
    """The last metric at each value against that at a reference value: the paper's own b, or the greatest n̂.

    Args:
        state: (the other values, the paper's scores by value) → the statement for each value that has one.
    """
    own = INTERVALS if option == "intervals" else None

    def test(results: Results) -> Finding | None:
        by_state = list(ablations(results, experiment, option, own))
        if not by_state:
            return None
        label, varied = by_state[-1]
        rows = _of_papers_range(results, varied, option)
        if len(rows) < 2:
            return None
        reference = own if own in rows else max(rows)
        metric = list(metrics(rows[reference].first))[-1]
        printed = published.ablated(f"{option}_{experiment}", metric if metric.startswith("Avg") else "Avg.")
        stated = state([value for value in rows if value != reference], printed)
        among = compared(results, experiment, rows[reference].trained)
        gaps = [
            row_differences.between(rows[value], rows[reference], experiment, metrics, metric, among)
            for value in stated
        ]
        decisions = decide([(gap, *stated[value]) for gap, value in zip(gaps, stated)])
        factor, symbol = rows[reference].setting.factor, SYMBOLS[option]
        facts = [
            Fact((decided(f"{symbol} = {value:g}", decision, unit="points"),), factor, metric, decision)
            for value, decision in zip(stated, decisions)
        ]
        about = f"{told(label, decisions, experiment)}. The differences are to {symbol} = {reference:g}"
        edges = {region.high for region, _ in stated.values()} - {0.0}
        margin = Quantity("the spread of the paper's own numbers", Score(max(edges)), 2, "points") if edges else None
        return concluded(results.model, facts, about, margin, values=len(facts))

    return test


def _of_papers_range(results: Results, varied: dict[Any, Row], option: str) -> dict[float, Row]:
    """The rows, by value, within the range of the paper's table; n̂ counts as a share of the dimensions."""
    values = published.ablated(f"{option}_open_llm", "Avg.")
    share = results.model.geometry.head_dim / published.GEOMETRY.head_dim if option == "n_hat" else 1.0
    least, most = min(values) * share, max(values) * share
    return {value: row for value, row in varied.items() if least <= value <= most}
