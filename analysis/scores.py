"""A score with its interval, and statistics of several scores: over seeds, differences, sign tests."""

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
        n: the number of samples or of seeds.

    Raises:
        InputError: one of them is not a finite number.
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
        """From a record's {"mean", "low", "high", "n"}, multiplied by `times` to change the unit."""
        mean, low, high = (times * record[key] for key in ("mean", "low", "high"))
        return cls(mean, low, high, record.get("n"))

    @property
    def holds_zero(self) -> bool:
        """Whether the interval contains zero."""
        return self.low <= 0 <= self.high


Scores = Mapping[str, Score | None]  # by metric; None where there is nothing to compare with


def stacked(rows: Sequence) -> np.ndarray:
    """Lists of numbers for the same samples in the same order, as one array [rows, …].

    Raises:
        InputError: their lengths differ, so they cannot belong to the same samples, or there are no numbers.
    """
    try:
        values = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise InputError("two records that are compared hold different numbers of samples; measure again.") from error
    if not values.size:
        raise InputError("a record that is compared holds no samples; measure it again.")
    return values


def over_seeds(runs: Sequence[Scores]) -> Scores:
    """One run's scores as they are; for several seeds, their mean with a 95 % interval over seeds and samples together.

    Student's interval over the seeds alone would be a single point if all seeds answered the same few samples alike.
    The two errors are independent, so the squares of two half-widths add: Student's over seeds, and the seeds' mean
    half-width over samples. Scores here are never negative, so the interval ends at 0 or above.
    """
    if len(runs) == 1:
        return runs[0]
    pooled = {}
    for other in runs:
        if differing := sorted(other.keys() ^ runs[0].keys()):
            raise InputError(f"not every seed of a setting has the score {differing[0]!r}; measure the rest again.")
    for metric in runs[0]:
        scores = [run[metric] for run in runs]
        means = np.array([score.mean for score in scores])
        mean, seeds = float(means.mean()), _students_half(means)
        below, above = (float(np.mean([abs(getattr(s, end) - s.mean) for s in scores])) for end in ("low", "high"))
        low, high = max(mean - np.hypot(seeds, below), 0.0), mean + np.hypot(seeds, above)
        pooled[metric] = Score(mean, float(low), float(high), len(scores))
    return pooled


def difference(ours: Mapping[int | None, Score], others: Mapping[int | None, Score]) -> Score:
    """Our score minus the other's with a 95 % interval: Student's over the seeds that both have, if several.

    Otherwise the two intervals over samples are combined as if independent, which is wider than a paired interval.
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
    """How many samples one setting answers better and worse than another, and the p-value of that."""

    better: int
    worse: int
    p: float


def sign_test(ours: np.ndarray, others: np.ndarray) -> SignTest:
    """The two-sided sign test over the samples [n] that differ by more than a millionth."""
    gaps = np.asarray(ours) - np.asarray(others)
    better, worse = int((gaps > 1e-6).sum()), int((gaps < -1e-6).sum())
    return SignTest(better, worse, min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5))))


def _students_half(values: np.ndarray) -> float:
    """Half the width of Student's 95 % interval of the mean of values [n]."""
    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n))
