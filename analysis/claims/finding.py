"""What a test of a claim finds: numbers with their intervals, what each decides, and the verdict that follows.

A claim may consist of several statements, about several rivals, factors or lengths. It is contradicted if one statement
is, reproduced if all are, and undecided otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.hypothesis_tests import CONTRADICTED, REPRODUCED, UNDECIDED, Decision
from analysis.results import Model
from analysis.scores import Score

EXACT, NONE = "reproduced exactly", "not run"
VERDICTS = (EXACT, REPRODUCED, CONTRADICTED, UNDECIDED, NONE)


@dataclass(frozen=True)
class Quantity:
    """A number of a finding.

    Attributes:
        name: what the number measures.
        score: the number, with its interval if it has one.
        digits: decimals to print.
        unit: may be empty.
        signed: whether it is a difference or a correlation.
    """

    name: str
    score: Score
    digits: int = 2
    unit: str = ""
    signed: bool = False


@dataclass(frozen=True)
class Fact:
    """Numbers that belong together.

    Attributes:
        quantities: the numbers; with a decision, the last one is the number that is decided on.
        factor: s; None if there is none.
        metric: the metric of the numbers.
        decision: the decision on a number that has an interval.
        stated: the verdict on computed numbers, which have no interval; empty if the fact decides nothing.
    """

    quantities: tuple[Quantity, ...]
    factor: float | None = None
    metric: str = ""
    decision: Decision | None = None
    stated: str = ""

    @property
    def verdict(self) -> str:
        """The verdict; empty if the fact decides nothing."""
        return self.decision.verdict if self.decision else self.stated


@dataclass(frozen=True)
class Finding:
    """What was measured of one model.

    Attributes:
        model: the model of the records; None if no model has any.
        verdict: one of VERDICTS.
        facts: the numbers.
        about: what the numbers are, and of which models.
        family: what is decided together and corrected by Holm, as (count, name); empty for a single decision.
        margin: for a claim of no effect, the difference up to which there is none, named by its origin.
    """

    model: Model | None
    verdict: str
    facts: tuple[Fact, ...] = ()
    about: str = ""
    family: tuple[tuple[int, str], ...] = ()
    margin: Quantity | None = None


def concluded(
    model: Model, facts: Sequence[Fact], about: str = "", margin: Quantity | None = None, **family: int
) -> Finding:
    """The finding of some facts.

    Args:
        family: how many rivals, factors, … are decided together.
    """
    counts = tuple((count, name if count > 1 else name.removesuffix("s")) for name, count in family.items())
    several = tuple(entry for entry in counts if entry[0] > 1)
    verdict = overall([fact.verdict for fact in facts if fact.verdict])
    return Finding(model, verdict, tuple(facts), about, several, margin)


def overall(verdicts: Sequence[str]) -> str:
    """One verdict for several: contradicted if one is, else undecided if one is, else the weakest of them."""
    for verdict in (CONTRADICTED, UNDECIDED, REPRODUCED):
        if verdict in verdicts:
            return verdict
    return EXACT
