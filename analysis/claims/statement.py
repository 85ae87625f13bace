"""A claim of the paper, and the statements that it makes about a model.

A statement is one number: where the claim places it, and what was measured. A claim holds on a
model if all of its statements do, does not hold if one of them does not, and is not decided
otherwise. What could not have come out otherwise decides nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from analysis.differences import CONTRADICTED, REPRODUCED, UNDECIDED, Region, holm
from analysis.results import Results
from analysis.scores import Score, counted, number, shown
from analysis.settings import STATES, seed_count

EXACT = "reproduced"
CERTAIN = "true by construction"
NONE = "not tested"
# The model that runs every experiment in small. Its losses and scores follow in part from how it
# was made, so it decides no claim about them.
TEST_BED = "tiny"
VERDICTS = {
    EXACT: "the paper's own numbers, computed again; the greatest deviation stands beside it",
    REPRODUCED: "the whole interval lies where the claim says",
    CONTRADICTED: "the whole interval lies where the claim does not",
    UNDECIDED: "neither is shown, or there is no interval",
    CERTAIN: "it could not have come out otherwise",
    NONE: "no record could decide it; what it would take stands there",
}
# What stands beside a statement that was not tested: what it would take.
TAKES = "a test takes"
FINE_TUNED = STATES[True]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One number that a claim is about.

    Attributes:
        what: what the number is of.
        number: the number, with its 95 % interval if it has one.
        state: the training, or how the number was computed; may be empty.
        read: what the training took of its data, where several fine-tunes differ in that; else
            empty.
        by: what decides it, where a claim is tested in two ways: "loss" or "keys"; else empty.
        sample: what the number is averaged over, in the singular; may be empty.
        factor: s.
        metric: the metric of the number; may be empty.
        region: where the claim places the number; None if it cannot be tested on the model.
        paper: the paper's number; None if it states none.
        beside: names and printed values of numbers that belong to it.
        count: the number as counts, printed before it; may be empty.
        unit, digits, signed: how the number is printed.
        verdict: one of VERDICTS; NONE before :func:`decided`, unless nothing random decides.
    """

    what: str
    number: Score
    state: str
    factor: float
    read: str = ""
    by: str = ""
    sample: str = ""
    metric: str = ""
    region: Region | None = None
    paper: float | None = None
    beside: Sequence[tuple[str, str]] = ()
    count: str = ""
    unit: str = ""
    digits: int = 2
    signed: bool = False
    verdict: str = NONE

    @property
    def is_open(self) -> bool:
        """Whether it can be tested, and :func:`decided` has not yet said how that came out."""
        return self.region is not None and self.verdict == NONE

    @property
    def measured_on(self) -> str:
        """The training, what decides, and how many seeds and samples the number is over, as
        "fine-tuned, by loss, 3 seeds, 8 texts"."""
        words = (
            self.state,
            self.read,
            f"by {self.by}" if self.by else "",
            seed_count(self.number.seeds) if self.state == FINE_TUNED else "",
            counted(self.number.n, self.sample) if self.number.n else "",
        )
        return ", ".join(filter(None, words))

    @property
    def value(self) -> str:
        """The number with its interval, or with the value of each text, and its unit."""
        value = self._printed(self.number)
        return f"{self.count}: {value}" if self.count else value

    @property
    def papers(self) -> str:
        """The paper's number as :attr:`value` prints it; empty if it states none."""
        if self.paper is None:
            return ""
        return self._printed(Score(self.paper)) if self.paper else "no difference"

    def _printed(self, score: Score) -> str:
        return f"{shown(score, self.digits, self.signed)} {self.unit}".strip()

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """What belongs beside the number: its seeds, and other numbers."""
        if len(self.number.by_seed) < 2 or self.count:
            return [*self.beside]
        values = [number(value, self.digits, self.signed) for value in self.number.by_seed]
        return [("by seed", ", ".join(values)), *self.beside]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        key: a short name, for code and files.
        text: the claim.
        where: the part of the paper that makes it.
        takes: what it takes to test the claim; printed where no model has a record that could
            decide it.
        states: what is stated of a model; nothing if nothing was measured, or can be.
        on_test_bed: whether the test bed can decide it: time, and what is so by construction.
    """

    key: str
    text: str
    where: str
    takes: str
    states: Callable[[Results], Iterable[Statement]] = lambda _: ()
    on_test_bed: bool = False

    def statements(self, results: Results) -> list[Statement]:
        """With their verdicts; none if there is no record of the model, or it cannot decide."""
        can_decide = self.on_test_bed or results.name != TEST_BED
        return decided(self.states(results)) if can_decide else []


def overall(statements: Iterable[Statement]) -> str:
    """The verdict on a claim: that it does not hold if one statement does not, else the weakest of
    them.

    If some statements were tested and others not, the claim is not decided.
    """
    verdicts = {statement.verdict for statement in statements} or {NONE}
    if NONE in verdicts and len(verdicts) > 1:
        verdicts.add(UNDECIDED)
    weakest_first = CONTRADICTED, UNDECIDED, REPRODUCED, EXACT, CERTAIN, NONE
    return min(verdicts, key=weakest_first.index)


def decided(statements: Iterable[Statement]) -> list[Statement]:
    """The statements with their verdicts; they are decided together, at Holm's levels."""
    statements = list(statements)
    levels = iter(holm([each.region.p(each.number) for each in statements if each.is_open]))
    return [_decided(each, next(levels)) if each.is_open else each for each in statements]


def _decided(stated: Statement, level: float) -> Statement:
    """At this level; not tested where the interval is wider than the region, in which it then could
    not have lain."""
    verdict = stated.region.verdict(stated.number, level)
    too_wide = stated.region.times_too_wide(stated.number)
    if verdict != UNDECIDED or too_wide <= 1:
        return replace(stated, verdict=verdict)
    takes = f"an interval {too_wide:.1f} times narrower"
    return replace(stated, beside=[*stated.beside, (TAKES, takes)])
