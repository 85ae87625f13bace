"""What a test of a claim finds: numbers with their intervals, what each decides, and a verdict that follows.

A claim may say several things, of several rivals, factors or lengths. It is contradicted where one of them is,
reproduced where all are, and undecided otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.decisions import CONTRADICTED, REPRODUCED, UNDECIDED, Decision, Needed
from analysis.results import Scale
from analysis.scores import Score

EXACT, NONE = "reproduced exactly", "not run"
VERDICTS = (EXACT, REPRODUCED, CONTRADICTED, UNDECIDED, NONE)


@dataclass(frozen=True)
class Quantity:
    """A number of a finding.

    Attributes:
        name: what it is of.
        score: the number, with its interval where it has one.
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
        quantities: the numbers; of a decision the last is the one that is decided on.
        factor: s; None where there is none.
        metric: in which they are.
        decision: on a number that has an interval.
        stated: the verdict on numbers that have none, as they are computed; empty where the fact decides nothing.
        counted: what the decision's samples are: prompts, documents, windows, …
        needs: what would decide, where the decision's own count does not apply.
    """

    quantities: tuple[Quantity, ...]
    factor: float | None = None
    metric: str = ""
    decision: Decision | None = None
    stated: str = ""
    counted: str = "samples"
    needs: Needed | None = None

    @property
    def needed(self) -> Needed | None:
        """What would decide an undecided one; None where nothing is known to."""
        return self.needs or (self.decision.needed if self.decision else None)

    @property
    def verdict(self) -> str:
        """Empty where the fact decides nothing."""
        return self.decision.verdict if self.decision else self.stated


@dataclass(frozen=True)
class Finding:
    """What was measured at one scale.

    Attributes:
        scale: whose records; None where no scale has any.
        verdict: one of VERDICTS.
        facts: the numbers.
        about: what they are, and of which models.
        family: what is decided together and corrected by Holm, as counts by name; empty of a single decision.
        margin: up to which a difference counts as none, named by where it is from, where the claim is of no effect.
    """

    scale: Scale | None
    verdict: str
    facts: tuple[Fact, ...] = ()
    about: str = ""
    family: tuple[tuple[int, str], ...] = ()
    margin: Quantity | None = None


def concluded(
    scale: Scale, facts: Sequence[Fact], about: str = "", margin: Quantity | None = None, **family: int
) -> Finding:
    """The finding of some facts.

    Args:
        family: how many rivals, factors, … are decided together; one of each is no family.
    """
    counts = tuple((count, name if count > 1 else name.removesuffix("s")) for name, count in family.items())
    several = tuple(entry for entry in counts if entry[0] > 1)
    verdict = overall([fact.verdict for fact in facts if fact.verdict])
    return Finding(scale, verdict, tuple(facts), about, several, margin)


def overall(verdicts: Sequence[str]) -> str:
    """Of several: contradicted where one is, undecided where one is and none is contradicted, else the weakest."""
    for verdict in (CONTRADICTED, UNDECIDED, REPRODUCED):
        if verdict in verdicts:
            return verdict
    return EXACT
