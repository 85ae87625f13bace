"""Claims about the disturbance: the published numbers, which method has the least, and whether less means less loss."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from analysis import effects, published
from analysis.beyond import loss_by_position
from analysis.claims.finding import EXACT, Fact, Finding, Quantity, concluded
from analysis.claims.shared import decided
from analysis.comparison import in_comparison
from analysis.hypothesis_tests import ABOVE, CONTRADICTED, REPRODUCED, Estimate, decide
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from core import rope

_ROUNDING = 0.005  # relative; the published disturbances have three to four digits
_ABOUT = "disturbance and loss beyond L, without training"


def published_numbers(results: Results) -> Iterator[Finding]:
    """The paper's disturbances against those recomputed in float32, for a model of the paper's geometry."""
    if results.model.geometry != published.GEOMETRY:
        return
    numbers, facts, worst = published.disturbance(), [], 0.0
    for run in results.records("disturbance"):
        for row in _of(run, "float32"):
            value = numbers.get((row["method"], float(run["factor"])))
            if value is None or row["options"]:
                continue
            found = 1e3 * row["average"]
            off = abs(found / value - 1)
            worst = max(worst, off)
            both = (Quantity("published", Score(value)), Quantity("recomputed", Score(found)))
            met = EXACT if off < _ROUNDING else CONTRADICTED
            facts.append(Fact(both, float(run["factor"]), rope.METHODS[row["method"]].title, stated=met))
    if facts:
        facts.append(Fact((Quantity("largest deviation", Score(100 * worst), unit="%"),)))
        yield concluded(results.model, facts, "averaged disturbances in 10⁻³ nat")


def least(results: Results) -> Iterator[Finding]:
    """DPRoPE's disturbance at t = 0 against the least of the paper's rivals; nothing here is random."""
    facts = []
    # The disturbance depends only on the geometry, so every model of the paper's geometry must give its numbers.
    met = EXACT if results.model.geometry == published.GEOMETRY else REPRODUCED
    for run in results.records("disturbance"):
        rows = {row["method"]: row for row in _of(run, "float64") if not row["options"]}
        rivals = [rows[name] for name in effects.rivals("disturbance") if name in rows]
        if rope.OURS not in rows or not rivals:
            continue
        ours, rival = rows[rope.OURS], min(rivals, key=lambda row: row["average"])
        quantities = tuple(
            Quantity(Setting.of(row | {"factor": run["factor"]}).name, Score(1e3 * row["average"]))
            for row in (ours, rival)
        )
        stated = met if ours["average"] <= rival["average"] else CONTRADICTED
        facts.append(Fact(quantities, float(run["factor"]), stated=stated))
    if facts:
        yield concluded(results.model, facts, "averaged disturbances in 10⁻³ nat")


def _of(run: dict, precision: str) -> list[dict]:
    """The rows of a record of experiments.disturbance at a precision, by the released code's convention."""
    return [r for r in run["scores"] if (r["precision"], r["convention"]) == (precision, "released")]


def order_loss(results: Results) -> Iterator[Finding]:
    """The central claim, without training: whether settings with less disturbance have less loss beyond L."""
    found = []
    for factor in loss_by_position.measured_factors(results):
        rows = loss_by_position.untrained(results, factor).only(in_comparison(results.model)).rows
        moved = [(loss_by_position.disturbance(results, row), row) for row in rows]
        pairs = [(average, row.first["ranges"][-1]["mean"]) for average, row in moved if average is not None]
        if len(pairs) < 4 or any(len(set(values)) == 1 for values in zip(*pairs)):  # too little to order
            continue
        best = min(rows, key=lambda row: row.first["ranges"][-1]["mean"])
        loss = Quantity(f"least loss ({best.setting.name})", Score.of(best.first["ranges"][-1]), 3, "nats per token")
        found.append((factor, correlation(pairs), loss))
    if not found:
        return
    decisions = decide([(rho, ABOVE, effects.rank_correlation(factor)) for factor, rho, _ in found])
    facts = []
    for (factor, rho, loss), decision in zip(found, decisions):
        quantities = (loss, decided(f"Spearman's ρ over {rho.samples} settings", decision))
        facts.append(Fact(quantities, factor, decision=decision))
    yield concluded(results.model, facts, _ABOUT, factors=len(facts))


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


def selections_order_loss(results: Results) -> Iterator[Finding]:
    """The central claim over dozens of selections of pairs, by both conventions of the disturbance."""
    orders = [
        (run, convention, Score.of(order))
        for run in results.records("selections")
        for convention, order in run["spearman"].items()
    ]
    decisions = decide(
        [(Estimate.of(order), ABOVE, effects.rank_correlation(float(run["factor"]))) for run, _, order in orders]
    )
    facts = []
    for (run, convention, order), decision in zip(orders, decisions):
        best = min(run["scores"], key=lambda row: row["beyond"]["mean"])
        name = f"least loss ({2 * len(best['interpolated_pairs'])} dimensions interpolated)"
        quantities = (
            Quantity(name, Score.of(best["beyond"]), 3, "nats per token"),
            decided(f"Spearman's ρ over {order.n} selections", decision),
        )
        facts.append(Fact(quantities, float(run["factor"]), convention, decision))
    if facts:
        runs = len(results.records("selections"))
        yield concluded(results.model, facts, _ABOUT, conventions=len(facts) // runs, factors=runs)
