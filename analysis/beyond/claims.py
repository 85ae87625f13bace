"""What is measured of the paper's claims beyond the paper: whether disturbance orders the loss over many selections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from analysis import published
from analysis.claims import Claim, disturbances
from analysis.claims.finding import Fact, Finding, Quantity, concluded, decided
from analysis.hypothesis_tests import ABOVE, Estimate, decide
from analysis.results import Results
from analysis.scores import Score


def selections_order_loss(results: Results) -> Finding | None:
    """The central claim over dozens of selections of pairs, by both conventions of the disturbance."""
    runs = results.records("selections")
    orders = [(run, convention, Score.of(order)) for run in runs for convention, order in run["spearman"].items()]
    decisions = decide(
        [(Estimate.of(order), ABOVE, published.rank_correlation(float(run["factor"]))) for run, _, order in orders]
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
    about, conventions = "disturbance and loss beyond L, without training", len(facts) // max(len(runs), 1)
    return concluded(results.model, facts, about, conventions=conventions, factors=len(runs))


SELECTIONS = Claim(
    "The same, over dozens of selections of pairs (beyond the paper)",
    "section 5.1",
    (selections_order_loss,),
    ("Disturbance against loss",),
    "Less disturbance extends a model better (rank correlation ρ)",
)


def added(claims: Iterable[Claim]) -> list[Claim]:
    """The paper's claims; its central one has a second section with numbers, and the same over selections behind it."""
    listed = []
    for claim in claims:
        central = disturbances.order_loss in claim.tests
        listed += [replace(claim, shown=("Loss by position", *claim.shown)), SELECTIONS] if central else [claim]
    return listed
