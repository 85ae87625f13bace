"""Claims about the disturbance: the published numbers, which method has the least, and whether less means less loss."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from analysis import disturbance, published
from analysis.claims.finding import EXACT, Fact, Finding, Quantity, concluded, decided
from analysis.comparison import compared, factors, in_comparison
from analysis.hypothesis_tests import ABOVE, CONTRADICTED, REPRODUCED, Estimate, decide
from analysis.metrics import perplexity
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting, extended_length, tokens
from core import rope

_ROUNDING = 0.005  # relative; the published disturbances have three to four digits


def published_numbers(results: Results) -> Finding | None:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's geometry."""
    if not disturbance.comparable(results):
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
    return concluded(results.model, facts, "averaged disturbances in 10⁻³ nat")


def least(results: Results) -> Finding | None:
    """DPRoPE's disturbance at t = 0 against the least of the paper's rivals; nothing here is random."""
    by_factor: dict[float, dict[str, float]] = {}
    for factor, method, average in _averages(results, disturbance.FLOAT64):
        by_factor.setdefault(factor, {})[method] = average
    facts = []
    # The disturbance depends only on the geometry, so every model of the paper's geometry must give its numbers.
    met = EXACT if disturbance.comparable(results) else REPRODUCED
    for factor, averages in by_factor.items():
        rivals = [method for method in published.rivals("disturbance") if method in averages]
        if rope.OURS not in averages or not rivals:
            continue
        rival = min(rivals, key=averages.__getitem__)
        quantities = tuple(
            Quantity(Setting(method, (), factor).name, Score(averages[method])) for method in (rope.OURS, rival)
        )
        facts.append(Fact(quantities, factor, stated=met if averages[rope.OURS] <= averages[rival] else CONTRADICTED))
    return concluded(results.model, facts, "averaged disturbances in 10⁻³ nat")


def _averages(results: Results, way: disturbance.Way) -> Iterator[tuple[float, str, float]]:
    """(factor, method, averaged disturbance in 10⁻³ nat) of every method without options."""
    for factor, records in disturbance.by_factor(results).items():
        for record in records:
            row = disturbance.counted(record, way)
            if row and not record["options"]:
                yield factor, record["method"], 1e3 * row["average"]


def order_loss(results: Results) -> Finding | None:
    """The central claim, without training: whether settings with less disturbance have less perplexity at L'."""
    orders = []
    for factor in factors(results, "perplexity"):
        length = tokens(extended_length(results, factor))
        comparison = compared(results, "perplexity", False, twins=False, factor=factor)
        scored = [
            (row, score)
            for row in comparison.only(in_comparison(results.model)).rows
            if (score := perplexity(row.first).get(length))
        ]
        moved = [(disturbance.averaged(results, row.setting), score.mean) for row, score in scored]
        pairs = [(average, score) for average, score in moved if average is not None]
        if len(pairs) < 4 or any(len(set(values)) == 1 for values in zip(*pairs)):  # too little to order
            continue
        best, score = min(scored, key=lambda each: each[1].mean)
        orders.append((factor, correlation(pairs), Quantity(f"least perplexity ({best.setting.name})", score)))
    decisions = decide([(rho, ABOVE, published.rank_correlation(factor)) for factor, rho, _ in orders])
    facts = []
    for (factor, rho, perplexities), decision in zip(orders, decisions):
        quantities = (perplexities, decided(f"Spearman's ρ over {rho.samples} settings", decision))
        facts.append(Fact(quantities, factor, decision=decision))
    return concluded(results.model, facts, "disturbance and perplexity at L', without training", factors=len(facts))


def correlation(pairs: list[tuple[float, float]]) -> Estimate:
    """Spearman's ρ of n pairs, with errors from the 95 % interval on Fisher's model, atanh ρ.

    There the error is √((1 + ρ²/2) / (n - 3)) (Bonett and Wright, Psychometrika 2000). For a perfect order, ρ is taken
    half of its smallest step below 1, since atanh 1 is infinite.
    """
    from scipy.stats import spearmanr  # imported here, because it takes a second and nothing else needs it

    n = len(pairs)
    most = 1 - 6 / (n * (n**2 - 1))
    rho = float(np.clip(spearmanr(*zip(*pairs)).statistic, -most, most))
    half = ndtri(0.975) * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return Estimate.of(Score(rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), n))
