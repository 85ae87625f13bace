"""DPRoPE against the methods that the paper compares it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analysis import published, row_differences
from analysis.claims.finding import (
    Fact,
    Finding,
    Quantity,
    Test,
    concluded,
    decided,
    measured,
    papers_own,
    told,
)
from analysis.comparison import Comparison, Metrics, Row
from analysis.hypothesis_tests import ABOVE, BELOW, Region, decide
from analysis.metrics import log_perplexity, perplexity
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import extended_length, tokens


def ahead(experiment: str, metrics: Metrics) -> Test:
    """DPRoPE is ahead of every rival at every factor in a benchmark's average: fine-tuned, else without training."""

    def average(names: list[str], factor: float) -> str:
        return ([name for name in names if name.startswith("Avg")] or names)[-1]

    def effect(rival: str, factor: float, metric: str) -> float | None:
        return published.advantage(experiment, rival, factor, metric)

    def test(results: Results) -> Finding | None:
        return _against_all(results, experiment, metrics, metrics, average, effect, "points", ABOVE, 2)

    return test


def less_perplexity(results: Results) -> Finding | None:
    """DPRoPE has less perplexity than every rival at L'; its logarithm is compared, the loss in nats per token."""

    def at_extended_length(names: list[str], factor: float) -> str:
        extended = tokens(extended_length(results, factor))
        return extended if extended in names else names[-1]

    def effect(rival: str, factor: float, metric: str) -> float | None:
        return published.perplexity_advantage(rival, factor)

    return _against_all(
        results, "perplexity", log_perplexity, perplexity, at_extended_length, effect, "nats per token", BELOW, 3
    )


def _against_all(
    results: Results,
    experiment: str,
    metrics: Metrics,
    printed: Metrics,
    column: Callable[[list[str], float], str],
    effect: Callable[[str, float, str], float | None],
    unit: str,
    region: Region,
    digits: int,
) -> Finding | None:
    """One metric of DPRoPE against that of every rival.

    Args:
        metrics: the scores that are compared.
        printed: the scores that are printed beside the difference.
        column: (the metrics' names, factor) → the metric.
        effect: (rival, factor, metric) → the paper's difference.
    """
    for state, rows in measured(results, experiment):
        pairs = list(_pairs(results, experiment, rows))
        if not pairs:
            continue
        names = [column(list(metrics(ours.first)), ours.setting.factor) for ours, _ in pairs]
        family = []
        for (ours, rival), metric in zip(pairs, names):
            gap = row_differences.between(ours, rival, experiment, metrics, metric, rows)
            family.append((gap, region, effect(rival.setting.method, ours.setting.factor, metric)))
        decisions = decide(family)
        facts = []
        for pair, metric, decision in zip(pairs, names, decisions):
            beside = [Quantity(row.setting.name, Score(row.scores(printed)[metric].mean)) for row in pair]
            quantities = (*beside, decided("difference", decision, digits, unit))
            facts.append(Fact(quantities, pair[0].setting.factor, metric, decision))
        against = {rival.setting.method for _, rival in pairs}
        extensions = {fact.factor for fact in facts}
        about = told(state, decisions, experiment)
        return concluded(results.model, facts, about, rivals=len(against), factors=len(extensions))
    return None


def _pairs(results: Results, experiment: str, rows: Comparison) -> Iterator[tuple[Row, Row]]:
    """(DPRoPE as the paper uses it, a rival) for each of the paper's rivals at each factor."""
    for factor, ours in papers_own(results, rows).items():
        for method in published.rivals(experiment):
            rival = rows.only(lambda row: row.setting.plain()).find(method, None, factor)
            if rival:
                yield ours, rival
