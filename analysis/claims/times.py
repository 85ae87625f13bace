"""The claim that the method costs no time."""

from __future__ import annotations

from analysis import published
from analysis.claims.finding import CERTAIN, Fact, Finding, Quantity, concluded
from analysis.hypothesis_tests import CONTRADICTED, Estimate, Region, decide
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from core import rope


def costs_nothing(results: Results) -> Finding | None:
    """DPRoPE's times of a training step and of a forward pass are no more than PI's, within the margin.

    The paper's times show no difference, so the margin is half a unit of their last digit.
    """
    rows = [
        (float(record["factor"]), row)
        for record in results.records("time_cost")
        for row in record["scores"]
        if row["method"] == rope.PROPOSED
    ]
    margin = published.time_resolution()
    times = [Estimate.of(Score(row["relative_to_pi"], row["low"], row["high"], row["rounds"])) for _, row in rows]
    papers = [published.time(row["phase"]) for _, row in rows]
    decisions = decide([(time, Region(high=1 + margin), paper) for time, paper in zip(times, papers)])
    facts = []
    for (factor, row), decision in zip(rows, decisions):
        name = Setting.of(row | {"factor": factor}).name
        quantity = Quantity(name, decision.interval, 3, f"of {rope.METHODS[rope.TIME_REFERENCE].title}")
        # Both methods run the same operators on numbers of the same size; only a fault could make a difference.
        stated = CONTRADICTED if decision.verdict == CONTRADICTED else CERTAIN
        facts.append(Fact((quantity,), factor, row["phase"], stated=stated))
    phases = len({row["phase"] for _, row in rows})
    shown = Quantity("half a unit of the last digit of the paper's times", Score(margin), 3)
    about = f"{min((row['rounds'] for _, row in rows), default=0):,} rounds"
    return concluded(results.model, facts, about, shown, phases=phases, settings=len(facts) // max(phases, 1))
