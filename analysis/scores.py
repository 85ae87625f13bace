"""A score with its interval, and statistics of several scores: over seeds and texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from core.errors import InputError
from eval.intervals import LEAST_TEXTS, standard_error, students_half


def _finite(value: object) -> float:
    """A number of a record; InputError if it is none, or not finite."""
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    raise InputError(
        f"the records give a score of {value!r}; one of them is incomplete: measure it again."
    )


@dataclass(frozen=True)
class Score:
    """A mean with its 95 % interval.

    Attributes:
        mean, low, high: in the metric's unit. There is no interval of a published number, over
            fewer than LEAST_TEXTS texts and one seed, and where resampling changes nothing, as for
            one sample a task.
        n: the number of samples or of texts, of each seed; None for a published number.
        texts: the value of each text, for what is measured on texts.
        freedom: the degrees of freedom of the interval; infinite for a bootstrap.
        geometric: whether texts and seeds are averaged by their logarithms, as perplexities are.
        seeds: the number of training seeds.

    Raises:
        InputError: one of them is not a finite number.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    texts: tuple[float, ...] = ()
    freedom: float = math.inf
    geometric: bool = False
    seeds: int = 1

    def __post_init__(self) -> None:
        for value in (self.mean, self.low, self.high):
            if value is not None:
                _finite(value)

    @classmethod
    def of(cls, record: Mapping, times: float = 1.0) -> Score:
        """From a record's {"mean", "low", "high", "n"}, multiplied by `times` to change the unit.

        An interval that is a point comes from one sample, or from samples that are all alike, and
        is none.
        """
        mean, low, high = (times * _finite(record[key]) for key in ("mean", "low", "high"))
        return cls(mean, low, high, record.get("n")) if low < high else cls(mean, n=record.get("n"))

    @property
    def holds_zero(self) -> bool:
        """Whether zero is possible: the interval contains it, or there is no interval."""
        return self.low is None or self.low <= 0 <= self.high

    @property
    def over_seeds_alone(self) -> bool:
        """Whether the interval is over seeds on these texts, which are too few to stand for
        others."""
        return self.low is not None and 0 < len(self.texts) < LEAST_TEXTS

    def to(self, change: Callable[[float], float]) -> Score:
        """In another unit, by an increasing function."""
        low, high = (None if end is None else float(change(end)) for end in (self.low, self.high))
        texts = tuple(float(change(value)) for value in self.texts)
        return replace(self, mean=float(change(self.mean)), low=low, high=high, texts=texts)

    def at_most(self, most: float) -> Score:
        """The interval's upper end cut at `most`, such as 100 %, which an interval over seeds may
        exceed."""
        return self if self.high is None else replace(self, high=min(self.high, most))


Scores = Mapping[str, Score | None]  # by metric; None where there is nothing to compare with


def stacked(rows: ArrayLike) -> np.ndarray:
    """Lists of numbers for the same samples in the same order, as one array [rows, …].

    Raises:
        InputError: their lengths differ, so they cannot belong to the same samples, or there are no
            numbers.
    """
    try:
        values = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise InputError(
            "two records that are compared hold different numbers of samples; measure again."
        ) from error
    if not values.size:
        raise InputError("a record that is compared holds no samples; measure it again.")
    return values


def book_of(title: str) -> str:
    """The book that a text is of: parts of one book are no sample of books."""
    return re.sub(r", part \d+$", "", title)


def over_texts(values: ArrayLike, geometric: bool = False) -> Score:
    """The mean over texts with a 95 % interval over what a reader would draw anew: texts and, if
    several, seeds.

    The error over texts is that of each text's mean over seeds, the error over seeds that of each
    seed's mean over texts. They count as independent, so their squares add, and Student's interval
    takes its degrees of freedom from Welch and Satterthwaite. What a seed does to a single text
    enters both, so the interval is rather too wide. With one seed it is Student's interval over
    texts. With fewer than LEAST_TEXTS texts it is Student's over seeds, on these texts alone, and
    with one seed there is none.

    Args:
        values: of each seed and text, [seeds, texts].
        geometric: take the mean, and its errors, of logarithms.
    """
    values = stacked(values)
    with np.errstate(
        divide="ignore", invalid="ignore", over="ignore"
    ):  # Score refuses what is not finite
        values = np.log(values) if geometric else values
        score = _of_texts(values.mean(axis=0), values.mean(axis=1))
        return replace(score.to(np.exp), geometric=True) if geometric else score


def difference_over_texts(ours: ArrayLike, others: ArrayLike) -> Score:
    """:func:`over_texts` of a difference on the same texts, whose sides have no seed in common.

    The error over texts is that of the paired differences of each side's means over seeds. The
    error over seeds of each side is independent of the other's, and both are added.

    Args:
        ours, others: of each seed and text, [seeds, texts]; the numbers of seeds may differ.
    """
    ours, others = stacked(ours), stacked(others)
    by_text = np.subtract(*stacked([ours.mean(axis=0), others.mean(axis=0)]))
    return _of_texts(by_text, ours.mean(axis=1), others.mean(axis=1))


def _of_texts(by_text: np.ndarray, *by_seed: np.ndarray) -> Score:
    """A mean over texts [texts], and the independent samples of seeds that add to its error."""
    samples = [of_seeds for of_seeds in by_seed if len(of_seeds) > 1]
    if len(by_text) >= LEAST_TEXTS:
        samples.insert(0, by_text)
    score = Score(
        float(by_text.mean()),
        n=len(by_text),
        texts=tuple(by_text.tolist()),
        seeds=max(map(len, by_seed)),
    )
    if not samples:
        return score
    error, freedom = together((standard_error(sample), len(sample) - 1) for sample in samples)
    half = float(stdtrit(freedom, 0.975) * error)
    return replace(score, low=score.mean - half, high=score.mean + half, freedom=freedom)


def together(errors: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The error of a sum of independent (standard error, degrees of freedom), and its own degrees
    of freedom.

    They are Welch's and Satterthwaite's, and infinite where there is no error.
    """
    errors = list(errors)
    variance = sum(error**2 for error, _ in errors)
    spread = (
        sum((error**2 / variance) ** 2 / freedom for error, freedom in errors) if variance else 0.0
    )
    return math.sqrt(variance), 1 / spread if spread else math.inf


def over_seeds(runs: Sequence[Scores]) -> Scores:
    """One run's scores as they are; for several seeds, their mean with a 95 % interval over seeds
    and samples together.

    What is measured on texts is averaged by :func:`over_texts`. Of other scores:

    Student's interval over the seeds alone would be a single point if all seeds answered the same
    few samples alike. The two errors are independent, so the squares of two half-widths add:
    Student's over seeds, and the seeds' mean half-width over samples. Scores here are never
    negative, so the interval ends at 0 or above. There is none if a run has none.
    """
    if len(runs) == 1:
        return runs[0]
    pooled = {}
    for other in runs:
        if differing := sorted(other.keys() ^ runs[0].keys()):
            raise InputError(
                f"not every seed of a setting has the score {differing[0]!r}; measure the rest "
                f"again."
            )
    for metric in runs[0]:
        scores = [run[metric] for run in runs]
        if all(score.texts for score in scores):
            pooled[metric] = over_texts([score.texts for score in scores], scores[0].geometric)
            continue
        means = np.array([score.mean for score in scores])
        if any(score.low is None for score in scores):
            pooled[metric] = Score(float(means.mean()), n=scores[0].n, seeds=len(scores))
            continue
        mean, seeds = float(means.mean()), students_half(means)
        below, above = (
            float(np.mean([abs(getattr(s, end) - s.mean) for s in scores]))
            for end in ("low", "high")
        )
        low, high = max(mean - np.hypot(seeds, below), 0.0), mean + np.hypot(seeds, above)
        pooled[metric] = Score(mean, float(low), float(high), scores[0].n, seeds=len(scores))
    return pooled
