"""A claim of the paper, and the statements that it makes about a model.

A statement is one number: where the claim places it, and what was measured. A claim holds on a
model if all of its statements do, does not hold if one of them does not, and is not decided
otherwise. What could not have come out otherwise decides nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.comparison import Comparison, Row, compared
from analysis.hypothesis_tests import (
    CONTRADICTED,
    LEVEL,
    REPRODUCED,
    UNDECIDED,
    Estimate,
    Region,
    holm,
)
from analysis.numbers import number, spread
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import STATES, seed_count
from core import rope

EXACT, CERTAIN, NONE = "reproduced", "true by construction", "not tested"
VERDICTS = {
    EXACT: "the paper's own numbers, computed again; the greatest deviation stands beside it",
    REPRODUCED: "the whole interval lies where the claim says",
    CONTRADICTED: "the whole interval lies where the claim does not",
    UNDECIDED: "the interval lies on both sides, or there are too few texts or seeds for one",
    CERTAIN: "it could not have come out otherwise",
    NONE: "no model has a record that could decide it; what it would take stands there",
}


@dataclass(frozen=True)
class Statement:
    """One number that a claim is about.

    Attributes:
        what: what the number is of.
        number: the number, with its errors if it has some.
        measured_on: the training, and how many seeds and samples the number is over.
        factor: s.
        metric: the metric of the number; may be empty.
        region: where the claim places the number; None if no interval decides, as it cannot be
            tested on the model.
        paper: the paper's number; None if it states none.
        beside: names and printed values of numbers that belong to it.
        unit, digits, signed: how the number is printed.
        most: the greatest value that there can be.
        level: the level of the decision, Holm's.
        verdict: one of VERDICTS; empty before :func:`decided`.
    """

    what: str
    number: Estimate
    measured_on: str
    factor: float
    metric: str = ""
    region: Region | None = None
    paper: float | None = None
    beside: Sequence[tuple[str, str]] = ()
    unit: str = ""
    digits: int = 2
    signed: bool = False
    most: float = np.inf
    level: float = LEVEL
    verdict: str = ""

    @property
    def interval(self) -> Score:
        """The number with its interval at the level of the decision."""
        return self.number.interval(self.level).at_most(self.most)

    @property
    def value(self) -> str:
        """The number with its interval, or with the value of each text, and its unit."""
        return printed(self.interval, self.digits, self.unit, self.signed)

    @property
    def papers(self) -> str:
        """The paper's number as :attr:`value` prints it; empty if it states none."""
        if not self.paper:
            return "" if self.paper is None else "no difference"
        return printed(Score(self.paper), self.digits, self.unit, self.signed)


Test = Callable[
    [Results], Iterable[Statement]
]  # what is stated of a model; nothing if nothing was measured


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        key: a short name, for code and files.
        text: the claim.
        where: the part of the paper that makes it.
        tests: what is measured.
        takes: what it takes to test the claim; printed where no model has a record that could
            decide it.
    """

    key: str
    text: str
    where: str
    tests: tuple[Test, ...] = ()
    takes: str = ""

    def statements(self, results: Results) -> list[Statement]:
        """Of all tests; none if there is no record of the model."""
        return [statement for test in self.tests for statement in test(results)]


def overall(statements: Iterable[Statement]) -> str:
    """The verdict on a claim: that it does not hold if one statement does not, else the weakest of
    them."""
    verdicts = {statement.verdict for statement in statements}
    return next(
        (
            each
            for each in (CONTRADICTED, UNDECIDED, REPRODUCED, EXACT, CERTAIN)
            if each in verdicts
        ),
        NONE,
    )


def decided(statements: Iterable[Statement]) -> list[Statement]:
    """The statements with their verdicts; they are decided together, at Holm's levels."""
    statements = list(statements)
    family = [each for each in statements if each.region]
    levels = holm(np.array([each.region.p(each.number) for each in family])).tolist()
    return [replace(each, verdict=NONE) for each in statements if not each.region] + [
        replace(each, level=level, verdict=each.region.verdict(each.number, level))
        for each, level in zip(family, levels)
    ]


def at_papers_n_hat(
    experiment: str,
) -> Callable[[Callable[[Results, Comparison, Row], Iterable[Statement]]], Test]:
    """Decorates (results, rows that compare, DPRoPE's row at one factor) → statements, so that it
    becomes a test.

    DPRoPE is taken at the paper's n̂ alone, 5/8 of d at s = 2 and 1/2 at s = 4, whatever scores
    best. Fine-tuned models are taken first, and those without training if fine-tuned ones give no
    statement.
    """

    def decorate(statements: Callable[[Results, Comparison, Row], Iterable[Statement]]) -> Test:
        def test(results: Results) -> list[Statement]:
            for trained, _ in reversed(STATES):
                rows, n_hats = (
                    compared(results, experiment, trained),
                    sorted(results.model.n_hat.items()),
                )
                own = [
                    rows.find(rope.PROPOSED, {"n_hat": n_hat}, factor) for factor, n_hat in n_hats
                ]
                if family := [
                    each for row in own if row for each in statements(results, rows, row)
                ]:
                    return decided(family)
            return []

        return test

    return decorate


def measured_on(trained: bool, number: Estimate, sample: str) -> str:
    """The training, and how many seeds and samples a number is over, as "fine-tuned, 3 seeds, 8
    texts"."""
    words = [dict(STATES)[trained]] + [seed_count(number.seeds)] * trained
    if number.samples:
        words.append(f"{number.samples:,} {sample}{'s' * (number.samples > 1)}")
    return ", ".join(words)


def printed(score: Score, digits: int = 2, unit: str = "", signed: bool = False) -> str:
    """A number with its interval, or with the value of each text, and its unit."""
    return " ".join(
        filter(None, (number(score.mean, digits, signed), spread(score, digits, signed), unit))
    )
