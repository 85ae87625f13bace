"""The claim that the method costs no time."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import published
from analysis.claims.finding import Fact, Finding, Quantity, concluded
from analysis.hypothesis_tests import Estimate, Region, decide
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from core import rope

_MARGIN = "half a unit of the last digit of the paper's times"


def costs_nothing(results: Results) -> Iterator[Finding]:
    """DPRoPE's times of a training step and of a forward pass are no more than PI's, within the margin.

    The paper's times show no difference, so the margin is half a unit of their last digit.
    """
    rows = [
        (float(record["factor"]), row)
        for record in results.records("time_cost")
        for row in record["scores"]
        if row["method"] == rope.OURS
    ]
    margin = published.time_resolution()
    decisions = decide([(_estimate(row), Region(high=1 + margin), published.time(row["phase"])) for _, row in rows])
    facts = []
    for (factor, row), decision in zip(rows, decisions):
        name = Setting.of(row | {"factor": factor}).name
        quantity = Quantity(name, decision.interval, 3, f"of {rope.METHODS[rope.UNIT].title}")
        facts.append(Fact((quantity,), factor, row["phase"], decision))
    if facts:
        phases = len({row["phase"] for _, row in rows})
        shown = Quantity(_MARGIN, Score(margin), 3)
        yield concluded(results.model, facts, margin=shown, phases=phases, settings=len(facts) // phases)


def _estimate(row: dict) -> Estimate:
    return Estimate.of(Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"]))
