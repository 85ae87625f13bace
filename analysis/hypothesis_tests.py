"""Whether a measured number lies in a region: its interval, and Holm's correction.

A claim places a number in a region: above zero, below zero, or within a margin. It is reproduced if
the whole interval lies in the region, contradicted if the whole interval lies outside, and
undecided otherwise, so also if there is no interval. The p-value belongs to the region's nearer
edge, so it is at most α exactly if the interval at 1 - α contains no edge. If several numbers are
decided together, each is decided at Holm's level (Scand. J. Stat. 1979).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        below, above: the error over samples, toward smaller and toward larger values; 0 if samples
            have no part in it.
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
        """From a 95 % interval over samples, taken as Student's on each side, or as normal for a
        bootstrap."""
        alone = cls(score.mean, samples=score.n, seeds=score.seeds, texts=score.texts)
        if score.low is None:
            return alone
        times = stdtrit(score.freedom, 0.975)
        below, above = (float(abs(end - score.mean) / times) for end in (score.low, score.high))
        return replace(alone, below=below, above=above, of_samples=score.freedom)

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two independent numbers; without errors if one of them has none."""
        gap = Estimate(self.mean - other.mean, samples=self.samples, seeds=self.seeds)
        if not (any(self.errors) and any(other.errors)):
            return gap
        (below, above), (less, more) = self.errors, other.errors
        freedom = min(self.of_samples, other.of_samples)
        return replace(
            gap, below=math.hypot(below, more), above=math.hypot(above, less), of_samples=freedom
        )

    @property
    def errors(self) -> tuple[float, float]:
        """The error of samples and seeds together, toward smaller and toward larger values."""
        return math.hypot(self.below, self.over_seeds), math.hypot(self.above, self.over_seeds)

    @property
    def degrees(self) -> float:
        """The degrees of freedom of both errors together, by Welch and Satterthwaite."""
        samples = math.hypot(self.below, self.above) / math.sqrt(2)
        return together([(samples, self.of_samples), (self.over_seeds, self.freedom or math.inf)])[
            1
        ]

    def interval(self, level: float = LEVEL) -> Score:
        """The interval at 1 - level, if there is an error."""
        alone = Score(self.mean, n=self.samples, texts=self.texts, seeds=self.seeds)
        if not any(self.errors):
            return alone
        times = stdtrit(self.degrees, 1 - level / 2)
        low, high = (
            float(self.mean + sign * times * error) for sign, error in zip((-1, 1), self.errors)
        )
        return replace(alone, low=low, high=high, freedom=self.degrees)


@dataclass(frozen=True)
class Region:
    """The region between two edges in which a claim places a number."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        low, high = (f"{edge:.4g}".replace("-", "−") for edge in (self.low, self.high))
        if math.isinf(self.low):
            return f"< {high}"
        return f"> {low}" if math.isinf(self.high) else f"{low} to {high}"

    def verdict(self, estimate: Estimate, level: float = LEVEL) -> str:
        """REPRODUCED, CONTRADICTED or UNDECIDED."""
        if self.p(estimate) > level:
            return UNDECIDED
        return REPRODUCED if self.low < estimate.mean < self.high else CONTRADICTED

    def p(self, estimate: Estimate) -> float:
        """The two-sided p-value of the nearer edge: the least level at which the interval contains
        no edge.

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


def _in_errors(gap: float, error: float) -> float:
    if error:
        return gap / error
    return math.inf if gap else 0.0


def holm(p_values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Holm's level for each of several p-values [n].

    In ascending order, the j-th p-value is compared with level / (n - j + 1). From the first one
    above its level on, all are compared with that same level.
    """
    order, n = np.argsort(p_values, kind="stable"), len(p_values)
    steps = level / np.arange(n, 0, -1)
    failing = np.flatnonzero(p_values[order] > steps)
    last = failing[0] if len(failing) else n - 1
    levels = np.empty(n)
    levels[order] = steps[np.minimum(np.arange(n), last)]
    return levels
