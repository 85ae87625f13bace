"""Whether a measured number decides a statement: its interval, and Holm's correction.

A statement says that a number lies in a region: above zero, below zero, or within a margin. It is reproduced if the
whole interval lies in the region, contradicted if the whole interval lies outside, and undecided otherwise, so also if
there is no interval. The p-value of a decision belongs to the region's nearer edge, so it is at most α exactly if the
interval at 1 - α contains no edge. If several statements are decided together, each is decided at Holm's level (Scand.
J. Stat. 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from analysis.scores import Score, together

REPRODUCED, CONTRADICTED, UNDECIDED = "holds here", "does not hold here", "not decided here"
LEVEL = 0.05


@dataclass(frozen=True)
class Estimate:
    """A number and its standard errors.

    Attributes:
        mean: the number, in the metric's unit.
        below, above: the error over samples, toward smaller and toward larger values; 0 if samples have no part in it.
        samples: the number of samples or of texts; None if it is not known.
        over_seeds: the error over training seeds; 0 if seeds have no part in it.
        seeds: the number of seeds.
        freedom: the degrees of freedom of the error over seeds.
        of_samples: the degrees of freedom of the error over samples; infinite for a bootstrap.
        texts: the value of each text, for what is measured on texts.

    A number without any error has no interval and decides nothing.
    """

    mean: float
    below: float = 0.0
    above: float = 0.0
    samples: int | None = None
    over_seeds: float = 0.0
    seeds: int = 1
    freedom: int = 0
    of_samples: float = math.inf
    texts: tuple[float, ...] = ()

    @classmethod
    def of(cls, score: Score) -> Estimate:
        """From a 95 % interval over samples, taken as Student's on each side, or as normal for a bootstrap."""
        if score.low is None:
            return cls(score.mean, samples=score.n, texts=score.texts)
        times = stdtrit(score.freedom, 0.975)
        below, above = (float(abs(end - score.mean) / times) for end in (score.low, score.high))
        return cls(score.mean, below, above, score.n, of_samples=score.freedom, texts=score.texts)

    @property
    def errors(self) -> tuple[float, float]:
        """The error of samples and seeds together, toward smaller and toward larger values."""
        return math.hypot(self.below, self.over_seeds), math.hypot(self.above, self.over_seeds)

    @property
    def degrees(self) -> float:
        """The degrees of freedom of both errors together, by Welch and Satterthwaite."""
        samples = math.hypot(self.below, self.above) / math.sqrt(2)
        return together([(samples, self.of_samples), (self.over_seeds, self.freedom or math.inf)])[1]

    def interval(self, level: float = LEVEL) -> Score:
        """The interval at 1 - level, if there is an error; n counts seeds if there are several, else samples."""
        n = self.seeds if self.seeds > 1 else self.samples
        if not any(self.errors):
            return Score(self.mean, n=n, texts=self.texts)
        times = stdtrit(self.degrees, 1 - level / 2)
        low, high = (float(self.mean + sign * times * error) for sign, error in zip((-1, 1), self.errors))
        return Score(self.mean, low, high, n, self.texts, self.degrees)


@dataclass(frozen=True)
class Region:
    """The region between two edges in which a statement places a number."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float) -> bool:
        """Whether a value lies in the region."""
        return self.low < value < self.high

    def p(self, estimate: Estimate) -> float:
        """The two-sided p-value of the nearer edge: the least level at which the interval contains no edge.

        It is 1 for a number that has no interval.
        """
        below, above = estimate.errors
        if not (below or above):
            return 1.0
        ends = ((estimate.mean - self.low, below, above), (self.high - estimate.mean, above, below))
        # If the mean lies beyond an edge, the interval's other end is nearer to that edge.
        far = min(_in_errors(abs(gap), toward if gap > 0 else away) for gap, toward, away in ends)
        return min(1.0, 2 * float(stdtr(estimate.degrees, -far)))


ABOVE, BELOW = Region(low=0.0), Region(high=0.0)


def within(margin: float) -> Region:
    """The region from -margin to margin."""
    return Region(-margin, margin)


def _in_errors(gap: float, error: float) -> float:
    if error:
        return gap / error
    return math.inf if gap else 0.0


@dataclass(frozen=True)
class Decision:
    """What a measured number says about a statement.

    Attributes:
        estimate: the number.
        region: the region in which the statement places it.
        effect: the number that the paper measured; None if the paper states nothing comparable.
        level: the level of the decision, Holm's within a family.
        p: the p-value, corrected by Holm.
    """

    estimate: Estimate
    region: Region
    effect: float | None
    level: float
    p: float

    @property
    def verdict(self) -> str:
        """REPRODUCED, CONTRADICTED or UNDECIDED."""
        if self.region.p(self.estimate) > self.level:
            return UNDECIDED
        return REPRODUCED if self.region.holds(self.estimate.mean) else CONTRADICTED

    @property
    def interval(self) -> Score:
        """The interval at the decision's level; it contains an edge of the region exactly if UNDECIDED."""
        return self.estimate.interval(self.level)


def decide(family: Sequence[tuple[Estimate, Region, float | None]]) -> list[Decision]:
    """The decisions on a family of statements (estimate, region, the paper's effect), corrected by Holm."""
    p_values = np.array([region.p(estimate) for estimate, region, _ in family])
    levels, corrected = holm(p_values)
    return [Decision(*each, float(level), float(p)) for each, level, p in zip(family, levels, corrected)]


def holm(p_values: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Holm's level for each of several p-values [n], and the corrected p-values [n].

    In ascending order, the j-th p-value is compared with level / (n - j + 1). From the first one above its level on,
    all are compared with that same level.
    """
    order, n = np.argsort(p_values, kind="stable"), len(p_values)
    steps = level / np.arange(n, 0, -1)
    failing = np.flatnonzero(p_values[order] > steps)
    last = failing[0] if len(failing) else n - 1
    levels, corrected = np.empty(n), np.empty(n)
    levels[order] = steps[np.minimum(np.arange(n), last)]
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(n, 0, -1)), 1.0)
    return levels, corrected
