"""A score with its interval; statistics of several scores, over seeds and texts; and how a score is
printed: with a real minus sign, its interval, or the value of each text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
        n: the number of samples or of texts, of each seed; None for a published number, and of a
            difference that is not paired.
        texts: the value of each text, for what is measured on texts.
        freedom: the degrees of freedom of the interval; infinite for a bootstrap.
        geometric: whether texts and seeds are averaged by their logarithms, as perplexities are.
        seeds: the number of training seeds.
        by_seed: the value of each seed; empty where seeds have no part in it, or are not paired.
        share: whether it is one in per cent, so that its interval ends at 0 and 100.

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
    share: bool = False

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
        if self.low is None:
            return 0.0, 0.0
        times = float(stdtrit(self.freedom, 0.975))
        return (self.mean - self.low) / times, (self.high - self.mean) / times

    def with_errors(self, below: float, above: float, freedom: float = math.inf) -> Score:
        """With the interval of standard errors toward smaller and larger values; as it is without
        an error."""
        if not (below or above):
            return self
        times = float(stdtrit(freedom, 0.975))
        low, high = self.mean - times * below, self.mean + times * above
        return replace(self, low=low, high=high, freedom=freedom)

    def with_further(self, errors: Sequence[tuple[float, float]]) -> Score:
        """With further independent (standard error, degrees of freedom), by Welch and
        Satterthwaite."""
        below, above = self.errors
        own = (below**2 + above**2) / 2
        further = sum(error**2 for error, _ in errors)
        spread = own**2 / self.freedom + sum(error**4 / freedom for error, freedom in errors)
        freedom = (own + further) ** 2 / spread if spread else math.inf
        return self.with_errors(
            math.sqrt(below**2 + further), math.sqrt(above**2 + further), freedom
        )

    @property
    def holds_zero(self) -> bool:
        """Whether zero is possible: the interval contains it, or there is no interval."""
        return self.low is None or self.low <= 0 <= self.high

    def exponential(self) -> Score:
        """Of a mean of logarithms, the geometric mean."""
        with np.errstate(over="ignore"):  # Score refuses what is not finite
            mean, low, high = (
                None if value is None else float(np.exp(value))
                for value in (self.mean, self.low, self.high)
            )
            return replace(
                self,
                mean=mean,
                low=low,
                high=high,
                texts=tuple(np.exp(self.texts).tolist()),
                by_seed=tuple(np.exp(self.by_seed).tolist()),
                geometric=True,
            )

    def within_100(self) -> Score:
        """As a share in per cent: with the interval, which Student's may exceed, cut at 0 and
        100."""
        if self.low is None:
            return replace(self, share=True)
        return replace(self, low=max(self.low, 0.0), high=min(self.high, 100.0), share=True)


Scores = Mapping[str, Score | None]  # by metric; None where there is nothing to compare with


def stacked(rows: ArrayLike) -> np.ndarray:
    """Lists of numbers for the same samples in the same order, as one array [rows, …].

    Raises:
        InputError: their lengths differ, so they cannot belong to the same samples, or they hold no
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


def over_texts(values: ArrayLike) -> Score:
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
    """
    values = stacked(values)
    with np.errstate(invalid="ignore", over="ignore"):  # Score refuses what is not finite
        return _of_texts(values.mean(axis=0), [values.mean(axis=1)])


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
    by_text = np.subtract(*stacked([ours.mean(axis=0), others.mean(axis=0)]))
    our_seeds, other_seeds = ours.mean(axis=1), others.mean(axis=1)
    by_seed = [our_seeds - other_seeds] if shared else [our_seeds, other_seeds]
    return _of_texts(by_text, by_seed)


def _of_texts(by_text: np.ndarray, by_seed: Sequence[np.ndarray]) -> Score:
    """A mean over texts [texts]; fewer than LEAST_TEXTS are no samples. For `by_seed` see
    :func:`combined`."""
    samples = [by_text] if len(by_text) >= LEAST_TEXTS else []
    score = combined(float(by_text.mean()), samples, by_seed)
    return replace(score, n=len(by_text), texts=tuple(by_text.tolist()))


def combined(mean: float, samples: Sequence[np.ndarray], by_seed: Sequence[np.ndarray]) -> Score:
    """A mean with the errors over samples and over seeds.

    Args:
        samples: the mean is that of the means of these groups; none where they are not known.
        by_seed: the independent samples of seeds that add to its error; one seed adds none.
    """
    errors = [(standard_error(group) / len(samples), len(group) - 1) for group in samples]
    errors += [(standard_error(seeds), len(seeds) - 1) for seeds in by_seed if len(seeds) > 1]
    score = Score(
        mean,
        n=sum(map(len, samples)) or None,
        seeds=max(map(len, by_seed)),
        by_seed=tuple(by_seed[0].tolist()) if len(by_seed) == 1 else (),
    )
    return score.with_further(errors)


def over_seeds(runs: Sequence[Scores]) -> Scores:
    """One run's scores as they are; for several seeds, their mean with a 95 % interval over seeds
    and samples together.

    What is measured on texts is averaged by :func:`over_texts`. Of other scores:

    Student's interval over the seeds alone would be a single point if all seeds answered the same
    few samples alike. The two errors are independent, so the squares of two half-widths add:
    Student's over seeds, and the seeds' mean half-width over samples. Where no run's interval goes
    below 0, as of a share, this one does not either. There is none if a run has none.
    """
    for other in runs:
        if differing := sorted(other.keys() ^ runs[0].keys()):
            raise InputError(
                f"not every seed of a setting has the score {differing[0]!r}; measure the rest "
                f"again."
            )
    return {metric: pooled([run[metric] for run in runs]) for metric in runs[0]}


def pooled(scores: Sequence[Score]) -> Score:
    """One score of several seeds, see :func:`over_seeds`."""
    if len(scores) == 1:
        return scores[0]
    score = _of_seeds(scores)
    return score.within_100() if scores[0].share else score


def _of_seeds(scores: Sequence[Score]) -> Score:
    if all(score.texts for score in scores):
        texts = stacked([score.texts for score in scores])
        if scores[0].geometric:
            return over_texts(np.log(texts)).exponential()
        return over_texts(texts)
    ends = [(score.mean, score.low, score.high) for score in scores]
    means, lows, highs = np.array(ends, dtype=np.float64).T  # NaN where there is no interval
    mean = float(means.mean())
    score = Score(mean, n=scores[0].n, seeds=len(means), by_seed=tuple(means.tolist()))
    if np.isnan(lows).any():
        return score
    seeds = students_half(means)
    low = max(mean - np.hypot(seeds, (means - lows).mean()), 0.0 if lows.min() >= 0 else -math.inf)
    high = mean + np.hypot(seeds, (highs - means).mean())
    return replace(score, low=float(low), high=float(high))


def number(value: float, digits: int, sign: bool = False) -> str:
    """A number with a real minus sign."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")


def counted(count: int, noun: str) -> str:
    """A number of things: "1 text", "2,000 texts"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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
    parts = [] if score.low is None else [interval(score, digits)]
    if 0 < len(score.texts) < LEAST_TEXTS:  # too few to stand for others
        parts += ["over seeds"] if parts else []
        each = by_text(score, digits, sign)
        parts.append(f"(texts: {each})" if each else "(one text)")
    return " ".join(parts)


def shown(score: Score, digits: int = 2, sign: bool = False) -> str:
    """A number with its interval, or with the value of each text."""
    return f"{number(score.mean, digits, sign)} {spread(score, digits, sign)}".strip()
