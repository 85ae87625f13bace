"""Claims about the disturbance: the published numbers, which method has the least, and whether less means less loss."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from analysis import disturbance, published, row_differences
from analysis.claims.finding import CERTAIN, EXACT, Fact, Finding, Quantity, concluded, decided, told
from analysis.comparison import compared, factors
from analysis.hypothesis_tests import BELOW, CONTRADICTED, REPRODUCED, decide
from analysis.metrics import log_perplexity, perplexity
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import STATES, Setting, extended_length, tokens
from core import rope

COMPUTED = "computed from base, d and L, mean over pairs in 10⁻³ nat"
_ROUNDING = 0.005  # relative; the published disturbances have three to four digits


def published_numbers(results: Results) -> Finding | None:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's geometry."""
    if not (results.model.plain == published.GEOMETRY):
        return None
    numbers, facts, worst = published.disturbance(), [], 0.0
    for factor, method, average in _averages(results, disturbance.FLOAT32):
        value = numbers.get((method, factor))
        if value is None:
            continue
        off = abs(average / value - 1)
        worst = max(worst, off)
        both = (Quantity("published", Score(value)), Quantity("recomputed", Score(average)))
        met = EXACT if off < _ROUNDING else CONTRADICTED
        facts.append(Fact(both, factor, rope.METHODS[method].title, stated=met))
    if facts:
        facts.append(Fact((Quantity("largest deviation", Score(100 * worst), unit="%"),)))
    return concluded(results.model, facts, COMPUTED)


def least(results: Results) -> Finding | None:
    """DPRoPE's disturbance at t = 0 against that of each of the paper's rivals; nothing here is random.

    At t = 0 each pair takes the lesser of two disturbances, one of which is PI's, so it cannot be above PI's.
    """
    by_factor: dict[float, dict[str, float]] = {}
    for factor, method, average in _averages(results, disturbance.FLOAT64):
        by_factor.setdefault(factor, {})[method] = average
    facts = []
    for factor, averages in by_factor.items():
        for rival in published.rivals("disturbance"):
            if rope.PROPOSED not in averages or rival not in averages:
                continue
            both = (rope.PROPOSED, rival)
            quantities = tuple(Quantity(Setting(each, (), factor).name, Score(averages[each])) for each in both)
            holds = REPRODUCED if averages[rope.PROPOSED] < averages[rival] else CONTRADICTED
            # The disturbance depends only on the geometry, so a model of the paper's must give the paper's numbers.
            met = EXACT if (results.model.plain == published.GEOMETRY) and holds == REPRODUCED else holds
            facts.append(Fact(quantities, factor, stated=CERTAIN if rival == rope.TIME_REFERENCE else met))
    return concluded(results.model, facts, COMPUTED)


def _averages(results: Results, way: disturbance.Convention) -> Iterator[tuple[float, str, float]]:
    """(factor, method, averaged disturbance in 10⁻³ nat) of every method without options."""
    for factor in (2.0, 4.0):
        for setting in disturbance.settings(results, factor):
            if not setting.options:
                yield factor, setting.method, disturbance.compute(results.model.geometry, setting, way).average


def order_loss(results: Results) -> Finding | None:
    """The central claim, without training: of two methods, that with less disturbance has less perplexity at L'.

    The methods are the paper's rivals and DPRoPE at t = 0 and at the paper's n̂. A correlation over a few methods, or
    over selections of pairs that contain each other, would rest on no sample.
    """
    family, named = [], []
    for factor in factors(results, "perplexity"):
        length = tokens(extended_length(results, factor))
        rows = compared(results, "perplexity", False, twins=False, factor=factor)
        wanted = [(method, {}) for method in published.rivals("disturbance")] + [(rope.PROPOSED, {})]
        wanted += [(rope.PROPOSED, {"n_hat": results.model.n_hat.get(factor)})]
        moved = [(row, average) for each in wanted if (row := rows.find(*each, factor))
                 and (average := disturbance.averaged(results, row.setting)) is not None]  # fmt: skip
        for (row, average), (other, others) in itertools.combinations(sorted(moved, key=lambda each: each[1]), 2):
            if average < others and all(length in each.scores(perplexity) for each in (row, other)):
                gap = row_differences.between(row, other, "perplexity", log_perplexity, length, rows)
                family.append((gap, BELOW, None))
                named.append((factor, row, other, average, others))
    facts = []
    for (factor, row, other, average, others), decision in zip(named, decide(family)):
        beside = [Quantity(f"{each.setting.name}, disturbance", Score(1e3 * value), 2, "× 10⁻³ nat")
                  for each, value in ((row, average), (other, others))]  # fmt: skip
        name = f"{row.setting.name} minus {other.setting.name}"
        facts.append(Fact((*beside, decided(name, decision, 3, "nats per token")), factor, decision=decision))
    about = told(dict(STATES)[False], [fact.decision for fact in facts if fact.decision], "perplexity")
    return concluded(results.model, facts, about, pairs=len(facts))
