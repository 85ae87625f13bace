"""What a test of a claim finds: numbers with their intervals, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.results import Scale
from analysis.scores import Score

EXACT, KIND, NOT, NONE = "reproduced exactly", "reproduced in kind", "not reproduced", "not run"


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
        quantities: the numbers.
        factor: s; None where there is none.
        metric: in which they are.
        holds: whether they bear the claim out.
    """

    quantities: tuple[Quantity, ...]
    factor: float | None = None
    metric: str = ""
    holds: bool = True


@dataclass(frozen=True)
class Finding:
    """What was measured at one scale.

    Attributes:
        scale: whose records; None where no scale has any.
        verdict: EXACT, KIND, NOT or NONE.
        facts: the numbers.
        about: what they are, and of which models.
    """

    scale: Scale | None
    verdict: str
    facts: tuple[Fact, ...] = ()
    about: str = ""


def in_kind(facts: list[Fact]) -> str:
    """KIND where every fact bears the claim out."""
    return KIND if all(fact.holds for fact in facts) else NOT
