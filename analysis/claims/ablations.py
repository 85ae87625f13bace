"""DPRoPE at each value of one option: where the score falls, and where the option makes no difference.

"No difference" is decided within a margin: the spread of the paper's own numbers over the values for which the paper
claims that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analysis import published, row_differences
from analysis.claims.finding import Fact, Finding, Quantity, concluded, decided, told
from analysis.comparison import Ablation, Metrics, Row, ablations, compared
from analysis.hypothesis_tests import BELOW, Region, decide, within
from analysis.metrics import longbench_e, open_llm
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import SYMBOLS
from core import rope

INTERVALS = rope.method_options(rope.OURS)["intervals"]  # b, the paper's own
EXCESS = 720.0  # the b at which LongBench-E falls in the paper

Statement = tuple[Region, float | None]  # for a value: the region of its difference, and the paper's difference


def too_few_dimensions(results: Results) -> Iterator[Finding]:
    """LongBench-E at the least n̂ of the paper's range is below that at the greatest."""

    def state(values: list[float], printed: dict[float, float]) -> dict[float, Statement]:
        effect = printed[min(printed)] - printed[max(printed)]
        return {min(values): (BELOW, effect)}

    yield from _ablated(results, "longbench_e", longbench_e, "n_hat", state)


def n_hat_is_alike(results: Results) -> Iterator[Finding]:
    """Open LLM at every n̂ of the paper's range equals that at the greatest, within the margin."""
    yield from _ablated(results, "open_llm", open_llm, "n_hat", _alike)


def intervals_are_alike(results: Results) -> Iterator[Finding]:
    """Open LLM at every b equals that at the paper's own b, within the margin."""
    yield from _ablated(results, "open_llm", open_llm, "intervals", _alike)


def only_the_most_intervals_hurt(results: Results) -> Iterator[Finding]:
    """LongBench-E at b = EXCESS is below that at the paper's own b; at every other b it is equal, within the margin."""

    def state(values: list[float], printed: dict[float, float]) -> dict[float, Statement]:
        kept = _alike([v for v in values if v != EXCESS], {v: score for v, score in printed.items() if v != EXCESS})
        fall = printed[EXCESS] - printed[INTERVALS]
        return kept | {value: (BELOW, fall) for value in values if value == EXCESS}

    yield from _ablated(results, "longbench_e", longbench_e, "intervals", state)


def _alike(values: list[float], printed: dict[float, float]) -> dict[float, Statement]:
    """The statement of no difference, within the spread of the paper's own numbers."""
    return {value: (within(max(printed.values()) - min(printed.values())), 0.0) for value in values}


def _ablated(
    results: Results,
    experiment: str,
    metrics: Metrics,
    option: str,
    state: Callable[[list[float], dict[float, float]], dict[float, Statement]],
) -> Iterator[Finding]:
    """The last metric at each value against that at a reference value: the paper's own b, or the greatest n̂.

    Args:
        state: (the other values, the paper's scores by value) → the statement for each value that has one.
    """
    default = INTERVALS if option == "intervals" else None
    for label, varied in list(ablations(results, experiment, option, default))[-1:]:
        rows = _of_papers_range(results, varied, option)
        if len(rows) < 2:
            return
        reference = INTERVALS if option == "intervals" and INTERVALS in rows else max(rows)
        metric = list(metrics(rows[reference].first))[-1]
        printed = published.ablated(f"{option}_{experiment}", metric if metric.startswith("Avg") else "Avg.")
        stated = state([value for value in rows if value != reference], printed)
        among = compared(results, experiment, varied.first.trained)
        gaps = [
            row_differences.between(rows[value], rows[reference], experiment, metrics, metric, among)
            for value in stated
        ]
        decisions = decide([(gap, *stated[value]) for gap, value in zip(gaps, stated)])
        factor = varied.first.setting.factor
        facts = []
        for value, decision in zip(stated, decisions):
            shown = decided(f"{SYMBOLS[option]} = {value:g}", decision, unit="points")
            facts.append(Fact((shown,), factor, metric, decision))
        about = f"{told(label, decisions)}. The differences are to {SYMBOLS[option]} = {reference:g}"
        edges = {region.high for region, _ in stated.values()} - {0.0}
        margin = Quantity("the spread of the paper's own numbers", Score(max(edges)), 2, "points") if edges else None
        yield concluded(results.model, facts, about, margin, values=len(facts))


def _of_papers_range(results: Results, varied: Ablation, option: str) -> dict[float, Row]:
    """The rows, by value, within the range of the paper's table; n̂ counts as a share of the dimensions."""
    values = published.ablated(f"{option}_open_llm", "Avg.")
    share = results.model.geometry.head_dim / published.GEOMETRY.head_dim if option == "n_hat" else 1.0
    least, most = min(values) * share, max(values) * share
    return {value: row for value, row in varied.rows.items() if least <= value <= most}
