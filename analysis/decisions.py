"""Whether a measured number decides a statement: its interval, Holm's correction, and what more would decide it.

A statement says in which region a number lies: above zero, below zero, within a margin. It is reproduced where the
whole interval lies in the region, contradicted where the whole interval lies outside, and undecided otherwise. The
p-value of a decision is that of the region's nearer edge, so it is at most α exactly where the interval at 1 - α holds
no edge. Of several statements that are decided together, each is decided at Holm's level (Scand. J. Stat. 1979).
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
POWER = 0.8  # the share of repetitions in which as many samples as are said to decide would
_MOST = 10**9  # samples or seeds that are still said


@dataclass(frozen=True)
class Estimate:
    """A number and its standard errors.

    Attributes:
        mean: in the metric's unit.
        below, above: the error over samples, toward smaller and toward larger values; 0 where samples are not a part.
        samples: how many; None where they are not a part.
        over_seeds: the error over training seeds; 0 where it is not a part.
        seeds: how many.
        freedom: the degrees of freedom of that error.
        by_chance: the share of its variance that would vanish with more samples: which of them each seed gets right.
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
        """From a 95 % interval over samples, as if normal toward either end."""
        below, above = (float(abs(end - score.mean) / ndtri(0.975)) for end in (score.low, score.high))
        return cls(score.mean, below, above, samples or score.n)

    @property
    def errors(self) -> tuple[float, float]:
        """Of samples and seeds together, toward smaller and toward larger values."""
        return math.hypot(self.below, self.over_seeds), math.hypot(self.above, self.over_seeds)

    @property
    def degrees(self) -> float:
        """Of freedom, by Welch and Satterthwaite; the samples' own are many."""
        share = self.over_seeds**2 / (sum(error**2 for error in self.errors) / 2) if self.over_seeds else 0.0
        return self.freedom / share**2 if share else math.inf

    def interval(self, level: float = LEVEL) -> Score:
        """At 1 - level; n counts seeds where there are several, else samples."""
        times = stdtrit(self.degrees, 1 - level / 2)
        low, high = (float(self.mean + sign * times * error) for sign, error in zip((-1, 1), self.errors))
        return Score(self.mean, low, high, self.seeds if self.seeds > 1 else self.samples)

    def of_samples(self, samples: int) -> Estimate:
        """The same at another number of samples."""
        ratio = self.samples / samples
        left = 1 - self.by_chance + self.by_chance * ratio
        below, above, over_seeds = (
            error * math.sqrt(times)
            for error, times in ((self.below, ratio), (self.above, ratio), (self.over_seeds, left))
        )
        by_chance = self.by_chance * ratio / left if left else 0.0
        return replace(self, below=below, above=above, samples=samples, over_seeds=over_seeds, by_chance=by_chance)

    def of_seeds(self, seeds: int) -> Estimate:
        """The same at another number of training seeds."""
        over_seeds = math.sqrt(self.seeds / seeds) * self.over_seeds
        return replace(self, over_seeds=over_seeds, seeds=seeds, freedom=max(self.freedom, seeds - 1))


@dataclass(frozen=True)
class Region:
    """Where a statement says that a number lies, between two edges."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float) -> bool:
        """Whether a value lies there."""
        return self.low < value < self.high

    def p(self, estimate: Estimate) -> float:
        """Of the nearer edge, two-sided: the least level at which the interval holds no edge."""
        below, above = estimate.errors
        ends = ((estimate.mean - self.low, below, above), (self.high - estimate.mean, above, below))
        # Toward an edge that is passed already, the interval's other end is the nearer one.
        far = min(_in_errors(abs(gap), toward if gap > 0 else away) for gap, toward, away in ends)
        return min(1.0, 2 * float(stdtr(estimate.degrees, -far)))


ABOVE, BELOW = Region(low=0.0), Region(high=0.0)


def within(margin: float) -> Region:
    """From -margin to margin."""
    return Region(-margin, margin)


def _in_errors(gap: float, error: float) -> float:
    if error:
        return gap / error
    return math.inf if gap else 0.0


@dataclass(frozen=True)
class Needed:
    """How many samples, seeds or both would decide; None of what may stay as it is."""

    samples: int | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class Decision:
    """What a measured number says of a statement.

    Attributes:
        estimate: the number.
        region: where the statement says that it lies.
        effect: what the paper measured of it; None where the paper states nothing that compares.
        level: at which it is decided: Holm's, of a family.
        p: corrected by Holm.
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
        """At the level of the decision: it holds an edge of the region exactly where the verdict is UNDECIDED."""
        return self.estimate.interval(self.level)

    @property
    def holds_effect(self) -> bool | None:
        """Whether the interval holds the paper's own effect; None where there is none."""
        return None if self.effect is None else self.interval.low <= self.effect <= self.interval.high

    @property
    def needed(self) -> Needed | None:
        """What would decide at the measured spread, were the paper's effect, or where it has none the mean, the truth.

        None where nothing would: that value is an edge of the region.
        """
        value = self.estimate.mean if self.effect is None else self.effect
        return needed(self.estimate, value, self.region, self.level)


def decide(family: Sequence[tuple[Estimate, Region, float | None]]) -> list[Decision]:
    """Every statement of a family, an estimate with its region and the paper's effect, corrected by Holm."""
    found = np.array([region.p(estimate) for estimate, region, _ in family])
    levels, corrected = holm(found)
    return [Decision(*each, float(level), float(p)) for each, level, p in zip(family, levels, corrected)]


def holm(found: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Holm's level of each of several p-values [n], and the p-values corrected [n].

    From the least on, the j-th is held against level / (n - j + 1); the first that is above its level ends it, and the
    rest are held against the same.
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
    """How many samples would decide in POWER of all repetitions, were `value` the truth and the spread as measured.

    Where the seeds' spread alone is too wide, how many seeds; where neither alone decides, both, each with half of the
    variance that is allowed.
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
    """The share of repetitions, each as precise as the estimate, that would decide, were `value` the truth."""
    (below, above), degrees = estimate.errors, estimate.degrees
    error, times = (below + above) / 2, stdtrit(degrees, 1 - level / 2)
    if not error:
        return 1.0

    def share(mean: float) -> float:
        """Of the repetitions whose mean is less."""
        return float(stdtr(degrees, (mean - value) / error))

    inside = share(region.high - times * above) - share(region.low + times * below)
    return max(inside, 0.0) + share(region.low - times * above) + 1 - share(region.high + times * below)


def _least(enough: Callable[[int], bool], start: int = 1) -> int | None:
    """The least number that is enough, if every larger one is too; else one that is. None beyond _MOST."""
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
