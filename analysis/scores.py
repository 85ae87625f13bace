"""A score with its interval; statistics of several scores, over seeds and texts; and how a score is
printed: with a real minus sign, its interval, or the value of each text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
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
        by_seed: the value of each seed; empty where seeds have no part in it, or are not paired.

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
    by_seed: tuple[float, ...] = ()

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
    def errors(self) -> tuple[float, float]:
        """The standard errors toward smaller and larger values; zeros without an interval."""
        if self.low is None or self.high is None:
            return 0.0, 0.0
        times = float(stdtrit(self.freedom, 0.975))
        return (self.mean - self.low) / times, (self.high - self.mean) / times

    def with_errors(self, below: float, above: float, freedom: float = math.inf) -> Score:
        """With the interval of standard errors toward smaller and larger values; without an error
        there is none."""
        if not (below or above):
            return replace(self, low=None, high=None)
        times = float(stdtrit(freedom, 0.975))
        low, high = self.mean - times * below, self.mean + times * above
        return replace(self, low=low, high=high, freedom=freedom)

    def with_further(self, errors: Sequence[tuple[float, float]]) -> Score:
        """With further independent (standard error, degrees of freedom), by Welch and
        Satterthwaite."""
        below, above = self.errors
        own = math.hypot(below, above) / math.sqrt(2)
        further, _ = together(errors)
        _, freedom = together([(own, self.freedom), *errors])
        return self.with_errors(math.hypot(below, further), math.hypot(above, further), freedom)

    def minus(self, other: Score) -> Score:
        """The difference of two independent numbers; no interval if one of them has none."""
        gap = Score(self.mean - other.mean, n=self.n, seeds=self.seeds)
        if self.low is None or other.low is None:
            return gap
        below, above = self.errors
        less, more = other.errors
        freedom = min(self.freedom, other.freedom)
        return gap.with_errors(math.hypot(below, more), math.hypot(above, less), freedom)

    @property
    def holds_zero(self) -> bool:
        """Whether zero is possible: the interval contains it, or there is no interval."""
        return self.low is None or self.low <= 0 <= self.high

    @property
    def over_seeds_alone(self) -> bool:
        """Whether the interval is over seeds on these texts, which are too few to stand for
        others."""
        return self.low is not None and 0 < len(self.texts) < LEAST_TEXTS

    def exponential(self) -> Score:
        """Of a mean of logarithms, the geometric mean."""
        low, high = (None if end is None else float(np.exp(end)) for end in (self.low, self.high))
        return replace(
            self,
            mean=float(np.exp(self.mean)),
            low=low,
            high=high,
            texts=tuple(np.exp(self.texts).tolist()),
            by_seed=tuple(np.exp(self.by_seed).tolist()),
            geometric=True,
        )

    def at_most(self, most: float) -> Score:
        """The interval's upper end cut at `most`, such as 100 %, which an interval over seeds may
        exceed."""
        return self if self.high is None else replace(self, high=min(self.high, most))


Scores = Mapping[str, Score | None]  # by metric; None where there is nothing to compare with


def stacked(rows: ArrayLike) -> np.ndarray:
    """Lists of numbers for the same samples in the same order, as one array [rows, …].

    Raises:
        InputError: their lengths differ, so they cannot belong to the same samples, or they hold no
            numbers, or something else.
    """
    try:
        values = np.array(rows)
    except ValueError as error:
        raise InputError(
            "two records that are compared hold different numbers of samples; measure again."
        ) from error
    if not values.size:
        raise InputError("a record that is compared holds no samples; measure it again.")
    if values.dtype.kind not in "fiu":
        raise InputError("a record that is compared holds no numbers; measure it again.")
    return values.astype(np.float64)


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
        by_seed = values.mean(axis=1)
        score = replace(_of_texts(values.mean(axis=0), by_seed), by_seed=tuple(by_seed.tolist()))
        return score.exponential() if geometric else score


def difference_over_texts(ours: ArrayLike, others: ArrayLike, shared: bool) -> Score:
    """:func:`over_texts` of a difference on the same texts.

    The error over texts is that of the paired differences of each side's means over seeds. Where no
    seed is shared, the error over seeds of each side is independent of the other's, and both are
    added.

    Args:
        ours, others: of each seed and text, [seeds, texts].
        shared: whether both are of the same seeds, in the same order.
    """
    ours = stacked(ours)
    others = stacked(others)
    if shared:
        return over_texts(np.subtract(*stacked([ours, others])))
    by_text = np.subtract(*stacked([ours.mean(axis=0), others.mean(axis=0)]))
    return _of_texts(by_text, ours.mean(axis=1), others.mean(axis=1))


def _of_texts(by_text: np.ndarray, *by_seed: np.ndarray) -> Score:
    """A mean over texts [texts], and the independent samples of seeds that add to its error."""
    errors = seed_errors(by_seed)
    if len(by_text) >= LEAST_TEXTS:
        errors.insert(0, (standard_error(by_text), len(by_text) - 1))
    texts = tuple(by_text.tolist())
    seeds = max(map(len, by_seed))
    mean = float(by_text.mean())
    return Score(mean, n=len(texts), texts=texts, seeds=seeds).with_further(errors)


def seed_errors(by_seed: Iterable[np.ndarray]) -> list[tuple[float, float]]:
    """(standard error, degrees of freedom) of samples of seeds; one seed has none."""
    return [(standard_error(of), len(of) - 1) for of in by_seed if len(of) > 1]


def together(errors: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The error of a sum of independent (standard error, degrees of freedom), and its own degrees
    of freedom.

    They are Welch's and Satterthwaite's, and infinite where there is no error.
    """
    errors = list(errors)
    variance = sum(error**2 for error, _ in errors)
    if not variance:
        return 0.0, math.inf
    spread = sum((error**2 / variance) ** 2 / freedom for error, freedom in errors)
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
    for other in runs:
        if differing := sorted(other.keys() ^ runs[0].keys()):
            raise InputError(
                f"not every seed of a setting has the score {differing[0]!r}; measure the rest "
                f"again."
            )
    return {metric: _over_seeds([run[metric] for run in runs]) for metric in runs[0]}


def _over_seeds(scores: list[Score]) -> Score:
    if all(score.texts for score in scores):
        return over_texts([score.texts for score in scores], scores[0].geometric)
    means = np.array([score.mean for score in scores])
    mean = float(means.mean())
    pooled = Score(mean, n=scores[0].n, seeds=len(means), by_seed=tuple(means.tolist()))
    if any(score.low is None for score in scores):
        return pooled
    seeds = students_half(means)
    below = np.mean([score.mean - score.low for score in scores])
    above = np.mean([score.high - score.mean for score in scores])
    low = max(mean - np.hypot(seeds, below), 0.0)
    return replace(pooled, low=float(low), high=float(mean + np.hypot(seeds, above)))


def number(value: float, digits: int, sign: bool = False) -> str:
    """A number with a real minus sign."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def counted(count: int, noun: str) -> str:
    """A number of things: "1 text", "2,000 texts"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def interval(score: Score, digits: int) -> str:
    """[low, high]; empty where there is no interval."""
    return (
        "" if score.low is None else f"[{number(score.low, digits)}, {number(score.high, digits)}]"
    )


def by_text(score: Score, digits: int, sign: bool = False) -> str:
    """The value of each text, where there are too few for an interval over texts; empty for a
    single one."""
    few = 1 < len(score.texts) < LEAST_TEXTS
    return ", ".join(number(value, digits, sign) for value in score.texts) if few else ""


def spread(score: Score, digits: int, sign: bool = False) -> str:
    """What stands behind a number in prose: its interval and of what it is; of few texts, the value
    of each."""
    parts = [interval(score, digits)]
    each = by_text(score, digits, sign)
    parts += ["over seeds"] if score.over_seeds_alone else []
    parts += [f"(texts: {each})"] if each else ["(one text)"] if len(score.texts) == 1 else []
    return " ".join(filter(None, parts))
