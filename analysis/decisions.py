"""Whether a measured number decides a statement: its interval, Holm's correction, and how much more data would decide.

A statement says that a number lies in a region: above zero, below zero, or within a margin. It is reproduced if the
whole interval lies in the region, contradicted if the whole interval lies outside, and undecided otherwise. The p-value
of a decision belongs to the region's nearer edge, so it is at most α exactly if the interval at 1 - α contains no edge.
If several statements are decided together, each is decided at Holm's level (Scand. J. Stat. 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from analysis.scores import Score

CONTRADICTED, REPRODUCED, UNDECIDED = "contradicted", "reproduced", "undecided"
LEVEL = 0.05
POWER = 0.8  # the share of repetitions in which the stated number of samples would decide
_MOST = 10**9  # larger numbers of samples or seeds are not stated


@dataclass(frozen=True)
class Estimate:
    """A number and its standard errors.

    Attributes:
        mean: the number, in the metric's unit.
        below, above: the error over samples, toward smaller and toward larger values; 0 if samples have no part in it.
        samples: the number of samples; None if samples have no part in the error.
        over_seeds: the error over training seeds; 0 if seeds have no part in it.
        seeds: the number of seeds.
        freedom: the degrees of freedom of the error over seeds.
        by_chance: the share of the variance over seeds that more samples would remove. It comes from which samples each
            seed happens to get right.
    """

    mean: float
    below: float = 0.0
    above: float = 0.0
    samples: int | None = None
    over_seeds: float = 0.0
    seeds: int = 1
    freedom: int = 0
    by_chance: float = 0.0

    @classmethod
    def of(cls, score: Score, samples: int | None = None) -> Estimate:
        """From a 95 % interval over samples, taken as normal on each side."""
        below, above = (float(abs(end - score.mean) / ndtri(0.975)) for end in (score.low, score.high))
        return cls(score.mean, below, above, samples or score.n)

    @property
    def errors(self) -> tuple[float, float]:
        """The error of samples and seeds together, toward smaller and toward larger values."""
        return math.hypot(self.below, self.over_seeds), math.hypot(self.above, self.over_seeds)

    @property
    def degrees(self) -> float:
        """The degrees of freedom by Welch and Satterthwaite; those of samples count as infinite."""
        share = self.over_seeds**2 / (sum(error**2 for error in self.errors) / 2) if self.over_seeds else 0.0
        return self.freedom / share**2 if share else math.inf

    def interval(self, level: float = LEVEL) -> Score:
        """The interval at 1 - level; n counts seeds if there are several, else samples."""
        times = stdtrit(self.degrees, 1 - level / 2)
        low, high = (float(self.mean + sign * times * error) for sign, error in zip((-1, 1), self.errors))
        return Score(self.mean, low, high, self.seeds if self.seeds > 1 else self.samples)

    def of_samples(self, samples: int) -> Estimate:
        """The estimate as it would be with another number of samples."""
        ratio = self.samples / samples
        left = 1 - self.by_chance + self.by_chance * ratio
        below, above, over_seeds = (
            error * math.sqrt(times)
            for error, times in ((self.below, ratio), (self.above, ratio), (self.over_seeds, left))
        )
        by_chance = self.by_chance * ratio / left if left else 0.0
        return replace(self, below=below, above=above, samples=samples, over_seeds=over_seeds, by_chance=by_chance)

    def of_seeds(self, seeds: int) -> Estimate:
        """The estimate as it would be with another number of training seeds."""
        over_seeds = math.sqrt(self.seeds / seeds) * self.over_seeds
        return replace(self, over_seeds=over_seeds, seeds=seeds, freedom=max(self.freedom, seeds - 1))


@dataclass(frozen=True)
class Region:
    """The region between two edges in which a statement places a number."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float) -> bool:
        """Whether a value lies in the region."""
        return self.low < value < self.high

    def p(self, estimate: Estimate) -> float:
        """The two-sided p-value of the nearer edge: the least level at which the interval contains no edge."""
        below, above = estimate.errors
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
class Needed:
    """How many samples, seeds or both would decide; None for a number that may stay as it is."""

    samples: int | None = None
    seeds: int | None = None


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

    @property
    def holds_effect(self) -> bool | None:
        """Whether the interval contains the paper's own effect; None if there is none."""
        return None if self.effect is None else self.interval.low <= self.effect <= self.interval.high

    @property
    def needed(self) -> Needed | None:
        """What would decide if the paper's effect (if it has none, the mean) were true and the spread as measured.

        None if nothing would, because that value is an edge of the region.
        """
        value = self.estimate.mean if self.effect is None else self.effect
        return needed(self.estimate, value, self.region, self.level)


def decide(family: Sequence[tuple[Estimate, Region, float | None]]) -> list[Decision]:
    """The decisions on a family of statements (estimate, region, the paper's effect), corrected by Holm."""
    found = np.array([region.p(estimate) for estimate, region, _ in family])
    levels, corrected = holm(found)
    return [Decision(*each, float(level), float(p)) for each, level, p in zip(family, levels, corrected)]


def holm(found: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Holm's level for each of several p-values [n], and the corrected p-values [n].

    In ascending order, the j-th p-value is compared with level / (n - j + 1). From the first one above its level on,
    all are compared with that same level.
    """
    order, n = np.argsort(found, kind="stable"), len(found)
    steps = level / np.arange(n, 0, -1)
    failing = np.flatnonzero(found[order] > steps)
    last = failing[0] if len(failing) else n - 1
    levels, corrected = np.empty(n), np.empty(n)
    levels[order] = steps[np.minimum(np.arange(n), last)]
    corrected[order] = np.minimum(np.maximum.accumulate(found[order] * np.arange(n, 0, -1)), 1.0)
    return levels, corrected


def needed(estimate: Estimate, value: float, region: Region, level: float = LEVEL) -> Needed | None:
    """How many samples would decide in POWER of all repetitions, if `value` were true and the spread as measured.

    If the spread over seeds alone is too wide, the number of seeds. If neither alone decides, both numbers, each with
    half of the allowed variance.
    """
    if value in (region.low, region.high):
        return None

    def enough(made: Estimate) -> bool:
        return power(made, value, region, level) >= POWER

    if estimate.samples and (count := _least(lambda n: enough(estimate.of_samples(n)))):
        return Needed(samples=count)
    if not estimate.over_seeds:
        return None
    if count := _least(lambda n: enough(estimate.of_seeds(n)), estimate.seeds):
        return Needed(seeds=count)
    if not estimate.samples:
        return None
    many = estimate.of_samples(_MOST)
    alone = replace(many, below=0.0, above=0.0, over_seeds=math.sqrt(2) * many.over_seeds)
    seeds = _least(lambda n: enough(alone.of_seeds(n)), estimate.seeds)
    samples = seeds and _least(lambda n: enough(estimate.of_seeds(seeds).of_samples(n)))
    return Needed(samples, seeds) if samples else None


def power(estimate: Estimate, value: float, region: Region, level: float = LEVEL) -> float:
    """The share of repetitions, each as precise as the estimate, that would decide if `value` were true."""
    (below, above), degrees = estimate.errors, estimate.degrees
    error, times = (below + above) / 2, stdtrit(degrees, 1 - level / 2)
    if not error:
        return 1.0

    def share(mean: float) -> float:
        """The share of repetitions whose mean is smaller."""
        return float(stdtr(degrees, (mean - value) / error))

    inside = share(region.high - times * above) - share(region.low + times * below)
    return max(inside, 0.0) + share(region.low - times * above) + 1 - share(region.high + times * below)


def _least(enough: Callable[[int], bool], start: int = 1) -> int | None:
    """The least number that is enough, or None beyond _MOST. If enough numbers do not form a range, one of them."""
    high = start
    while not enough(high):
        if high >= _MOST:
            return None
        high *= 2
    low = max(start, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
