"""DPRoPE against the methods that the paper compares it with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from analysis import published, row_differences
from analysis.claims.finding import (
    Fact,
    Finding,
    Quantity,
    Test,
    concluded,
    decided,
    factors,
    measured,
    papers_own,
    told,
)
from analysis.comparison import Comparison, Metrics, Row, mean_of
from analysis.hypothesis_tests import ABOVE, BELOW, Region, decide
from analysis.metrics import perplexity
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import extended_length, tokens
from core.errors import InputError


def ahead(experiment: str, metrics: Metrics) -> Test:
    """DPRoPE is ahead of every rival at every factor in a benchmark's average: fine-tuned, else without training."""

    def effect(rival: str, factor: float, metric: str) -> float | None:
        return published.advantage(experiment, rival, factor, metric)

    def shown(row: Row, metric: str) -> Score:
        return Score(mean_of(row, metrics, metric))

    def test(results: Results) -> Iterator[Finding]:
        return _against_all(results, experiment, metrics, _average, effect, shown, "points")

    return test


def less_perplexity(results: Results) -> Iterator[Finding]:
    """DPRoPE has less perplexity than every rival at L'; its logarithm is compared, the loss in nats per token."""

    def effect(rival: str, factor: float, metric: str) -> float | None:
        return published.perplexity_advantage(rival, factor)

    def at_extended_length(results: Results, names: list[str], factor: float) -> str:
        extended = tokens(extended_length(results, factor))
        return extended if extended in names else names[-1]

    def shown(row: Row, metric: str) -> Score:
        return Score(mean_of(row, perplexity, metric))

    return _against_all(
        results, "perplexity", log_perplexity, at_extended_length, effect, shown, "nats per token", BELOW, 3
    )


def log_perplexity(record: dict) -> Scores:
    """The logarithms of the perplexities in a record of experiments.perplexity.

    Raises:
        InputError: an interval reaches 0, which no perplexity does.
    """
    if any(score.low <= 0 for score in perplexity(record).values()):
        raise InputError(f"the record {record.get('file')} has a perplexity of 0 or less; measure it again.")
    return {
        name: Score(math.log(score.mean), math.log(score.low), math.log(score.high), score.n)
        for name, score in perplexity(record).items()
    }


def _average(results: Results, names: list[str], factor: float) -> str:
    """The last average, or the last metric if there is no average."""
    return ([name for name in names if name.startswith("Avg")] or names)[-1]


def _against_all(
    results: Results,
    experiment: str,
    metrics: Metrics,
    column: Callable[[Results, list[str], float], str],
    effect: Callable[[str, float, str], float | None],
    shown: Callable[[Row, str], Score],
    unit: str,
    region: Region = ABOVE,
    digits: int = 2,
) -> Iterator[Finding]:
    for state, rows in measured(results, experiment):
        pairs = list(_pairs(results, experiment, rows))
        if not pairs:
            continue
        names = [column(results, list(metrics(ours.first)), ours.setting.factor) for ours, _ in pairs]
        family = []
        for (ours, rival), metric in zip(pairs, names):
            gap = row_differences.between(ours, rival, experiment, metrics, metric, rows)
            family.append((gap, region, effect(rival.setting.method, ours.setting.factor, metric)))
        decisions = decide(family)
        facts = []
        for (ours, rival), metric, decision in zip(pairs, names, decisions):
            quantities = [Quantity(row.setting.name, shown(row, metric)) for row in (ours, rival)]
            quantities.append(decided("difference", decision, digits, unit))
            facts.append(Fact(tuple(quantities), ours.setting.factor, metric, decision))
        against = {rival.setting.method for _, rival in pairs}
        extensions = {fact.factor for fact in facts}
        about = told(state, decisions)
        yield concluded(results.model, facts, about, rivals=len(against), factors=len(extensions))
        return


def _pairs(results: Results, experiment: str, rows: Comparison) -> Iterator[tuple[Row, Row]]:
    """(DPRoPE as the paper uses it, a rival) for each of the paper's rivals at each factor."""
    for factor in factors(rows):
        ours = papers_own(results, rows, factor)
        for method in published.rivals(experiment):
            rival = rows.only(lambda row: row.setting.plain()).find(method, None, factor)
            if ours and rival:
                yield ours, rival
