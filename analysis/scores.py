"""A score with its interval, and the statistics of several: over seeds, differences, sign tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy.special import bdtr, stdtrit

from core.errors import InputError


@dataclass(frozen=True)
class Score:
    """A mean with its 95 % interval.

    Attributes:
        mean, low, high: in the metric's unit; a published number has no interval.
        n: of samples, or of seeds.

    Raises:
        InputError: one of them is no finite number.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        for value in (self.mean, self.low, self.high):
            if value is not None and not (isinstance(value, Real) and math.isfinite(value)):
                raise InputError(f"the records give a score of {value!r}; one of them is incomplete: measure it again.")

    @classmethod
    def of(cls, record: Mapping, times: float = 1.0) -> Score:
        """From a record's {"mean", "low", "high", "n"}, in another unit if need be."""
        mean, low, high = (times * record[key] for key in ("mean", "low", "high"))
        return cls(mean, low, high, record.get("n"))

    @property
    def holds_zero(self) -> bool:
        """Whether the interval does."""
        return self.low <= 0 <= self.high


Scores = Mapping[str, Score | None]  # by metric; None where there is nothing to compare with


def stacked(rows: Sequence) -> np.ndarray:
    """Lists of numbers, of samples that stand in one order, as one array [rows, …].

    Raises:
        InputError: they differ in length, so they cannot be of the same samples; or there is none.
    """
    try:
        found = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise InputError("the records that are compared hold unequally many samples; measure them again.") from error
    if not found.size:
        raise InputError("a record that is compared holds no samples; measure it again.")
    return found


def over_seeds(runs: Sequence[Scores]) -> Scores:
    """One run's scores as they are; of several seeds, their mean with a 95 % interval for seeds and samples together.

    Student's interval over the seeds alone would be a point where all seeds answer the same few samples alike. The two
    errors are independent, so the half-widths add as squares: Student's, and the seeds' mean one over samples. No
    score here is negative, and no interval's end either.
    """
    if len(runs) == 1:
        return runs[0]
    found = {}
    for other in runs:
        if differing := sorted(other.keys() ^ runs[0].keys()):
            raise InputError(f"not every seed of a setting has the score {differing[0]!r}; measure the rest again.")
    for metric in runs[0]:
        own = [run[metric] for run in runs]
        means = np.array([score.mean for score in own])
        mean, seeds = float(means.mean()), _students_half(means)
        below, above = (float(np.mean([abs(getattr(s, end) - s.mean) for s in own])) for end in ("low", "high"))
        low, high = max(mean - np.hypot(seeds, below), 0.0), mean + np.hypot(seeds, above)
        found[metric] = Score(mean, float(low), float(high), len(own))
    return found


def difference(ours: Mapping[int | None, Score], others: Mapping[int | None, Score]) -> Score:
    """Ours minus the other's, by seed, with a 95 % interval: Student's over the seeds that both have, else of both.

    Two intervals over samples combine as if independent, which is wider than a paired one would be.
    """
    seeds = sorted(ours.keys() & others.keys(), key=str)
    if len(seeds) > 1:
        gaps = np.array([ours[seed].mean - others[seed].mean for seed in seeds])
        mean, half = float(gaps.mean()), _students_half(gaps)
        return Score(mean, mean - half, mean + half, len(seeds))
    a, b = (next(iter(scores.values())) for scores in (ours, others))
    mean = a.mean - b.mean
    low = mean - float(np.hypot(a.mean - a.low, b.high - b.mean))
    high = mean + float(np.hypot(a.high - a.mean, b.mean - b.low))
    return Score(mean, low, high)


@dataclass(frozen=True)
class SignTest:
    """How many samples one setting answers better and worse than another, and how likely chance alone is."""

    better: int
    worse: int
    p: float


def sign_test(ours: np.ndarray, others: np.ndarray) -> SignTest:
    """Two-sided, over the samples [n] on which the two differ; less than a millionth is no difference."""
    gaps = np.asarray(ours) - np.asarray(others)
    better, worse = int((gaps > 1e-6).sum()), int((gaps < -1e-6).sum())
    return SignTest(better, worse, min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5))))


def _students_half(values: np.ndarray) -> float:
    """Half of Student's 95 % interval of the mean [n]."""
    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n))
