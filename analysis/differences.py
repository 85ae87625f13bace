"""The difference of two rows with its errors, and whether it lies where a claim places it.

The errors are over training seeds, and over samples, paired if possible.

The two models answered the same samples, so the error over samples comes from the differences
sample by sample; with several seeds, from the means over seeds. A record without single samples is
paired by what it holds, such as tasks and lengths. Records that hold only totals are not paired,
and fewer than five texts are no sample of texts. Then, with several seeds, the error is that over
seeds alone, on these samples; with one seed, the two intervals are combined, and of so few texts
there is none. Two rows trained with one seed take the error over seeds from the settings that have
several. Two rows that share no seed have the errors of each side's seeds.

A claim places a number in a region: above zero, below zero, or within a margin. It is reproduced if
the whole interval lies in the region, contradicted if the whole interval lies outside, and
undecided otherwise, so also if there is no interval. The p-value belongs to the region's nearer
edge, so it is at most α exactly if the interval at 1 - α contains no edge. If several numbers are
decided together, each is decided at Holm's level (Scand. J. Stat. 1979); their intervals stay those
of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from analysis.comparison import Comparison, Metrics, Row, matched
from analysis.metrics import OPEN_LLM
from analysis.results import Record
from analysis.scores import Score, combined, difference_over_texts, stacked
from core.setting import tokens
from eval import longbench

REPRODUCED = "holds here"
CONTRADICTED = "does not hold here"
UNDECIDED = "not decided here"
LEVEL = 0.05
_LEAST = 5  # the fewest scores in a group


def between(
    ours: Row, other: Row, experiment: str, metrics: Metrics, metric: str, among: Comparison
) -> Score:
    """Our score minus the other's in a metric.

    Args:
        among: rows to take the error over seeds from, if these two have one seed.

    Raises:
        InputError: the two were not measured on the same samples.
    """
    ours, other, shared = matched(ours, other)
    our_scores = list(ours.by_seed(metrics, metric).values())
    other_scores = list(other.by_seed(metrics, metric).values())
    if all(score.texts for score in our_scores + other_scores):
        our_texts = [score.texts for score in our_scores]
        other_texts = [score.texts for score in other_scores]
        gap = difference_over_texts(our_texts, other_texts, shared)
    else:
        samples = _paired(ours, other, experiment, metric)
        gap = _over_samples(our_scores, other_scores, samples, shared)
    if gap.seeds == 1 and ours.trained:
        return gap.with_further(_of_other_settings(among, ours.setting.factor, metrics, metric))
    return gap


def _over_samples(
    our_scores: list[Score], other_scores: list[Score], samples: list[np.ndarray], shared: bool
) -> Score:
    """The difference of each side's mean over seeds, with the errors over samples and seeds.

    No random number is drawn, so that no outcome depends on a seed.

    Args:
        samples: see :func:`_paired`.
    """
    our_means = np.array([score.mean for score in our_scores])
    other_means = np.array([score.mean for score in other_scores])
    # The mean is of the scores that tables print; that over paired samples may differ from it.
    mean = float(our_means.mean() - other_means.mean())
    by_seed = [our_means - other_means] if shared else [our_means, other_means]
    gap = combined(mean, samples, by_seed)
    if samples or gap.seeds > 1:
        return gap
    (ours,), (other,) = our_scores, other_scores
    if None in (ours.low, other.low):
        return gap
    below, above = ours.errors
    less, more = other.errors
    return gap.with_errors(math.hypot(below, more), math.hypot(above, less))


def _of_other_settings(
    among: Comparison, factor: float, metrics: Metrics, metric: str
) -> list[tuple[float, float]]:
    """The standard deviation over seeds of a difference of two settings, and its degrees of
    freedom.

    It comes from the residuals of the scores [settings, seeds] after removing the mean of each
    setting and of each seed; a difference has twice their variance. None if fewer than two settings
    have several seeds in common.
    """
    rows = [row for row in among.rows if row.setting.factor == factor and len(row.seeds) > 1]
    seeds = set.intersection(*(set(row.seeds) for row in rows)) if rows else set()
    if len(rows) < 2 or len(seeds) < 2:
        return []
    scores = [row.by_seed(metrics, metric) for row in rows]
    values = np.array([[of[seed].mean for seed in sorted(seeds)] for of in scores])
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    freedom = (len(rows) - 1) * (len(seeds) - 1)
    return [(math.sqrt(2 * float((rest**2).sum()) / freedom), freedom)]


def _paired(ours: Row, other: Row, experiment: str, metric: str) -> list[np.ndarray]:
    """The differences of each group's samples; none if a record does not hold them, or a group has
    too few."""
    read = {"open_llm": _open_llm, "ruler": _ruler, "longbench_e": _longbench_e}.get(experiment)
    if read is None:
        return []
    by_run = [read(run, metric) for run in ours.runs + other.runs]
    count = len(ours.runs)
    gaps = []
    for group, names in by_run[0].items():
        shared = [name for name in names if all(name in scores.get(group, ()) for scores in by_run)]
        if shared:
            runs = stacked(
                [np.hstack([scores[group][name] for name in shared]) for scores in by_run]
            )
            gaps.append(runs[:count].mean(axis=0) - runs[count:].mean(axis=0))
    return gaps if min(map(len, gaps), default=0) >= _LEAST else []


# By group, all of equal weight, and name: of each sample, or the mean.
_Scores = dict[str, dict[str, Any]]


def _open_llm(run: Record, metric: str) -> _Scores:
    """Scores in per cent by document; each benchmark is a group."""
    return {
        name: {name: [100 * score for score in documents]}
        for name, documents in run.scores["by_document"].items()
        if metric in (OPEN_LLM["average"], OPEN_LLM.get(name))
    }


def _ruler(run: Record, metric: str) -> _Scores:
    """Scores by task; each length is a group."""
    return {
        length: {task: score["mean"] for task, score in tasks.items()}
        for length, tasks in run.scores["tasks"].items()
        if metric in ("Avg.", tokens(int(length)))
    }


def _longbench_e(run: Record, metric: str) -> _Scores:
    """Scores by task; each bucket of an average is a group."""
    tasks = run.scores["tasks"]
    buckets = longbench.AVERAGES.get(metric.replace(">L", ">4k"), ())
    return {
        bucket: {task: of[bucket]["mean"] for task, of in tasks.items() if bucket in of}
        for bucket in buckets
    }


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

    def verdict(self, score: Score, level: float = LEVEL) -> str:
        """REPRODUCED, CONTRADICTED or UNDECIDED."""
        if self.p(score) > level:
            return UNDECIDED
        return REPRODUCED if self.low < score.mean < self.high else CONTRADICTED

    def times_too_wide(self, score: Score) -> float:
        """A number's interval as a multiple of the widest that the region can hold; 0 if the
        number has no interval."""
        if score.low is None:
            return 0.0
        return (score.high - score.low) / (self.high - self.low)

    def p(self, score: Score) -> float:
        """The two-sided p-value of the nearer edge: the least level at which the interval contains
        no edge.

        It is 1 for a number that has no interval.
        """
        below, above = score.errors
        if not (below or above):
            return 1.0
        far = min(_in_errors(score.mean - edge, below, above) for edge in (self.low, self.high))
        return 2 * float(stdtr(score.freedom, -far))


ABOVE = Region(low=0.0)
BELOW = Region(high=0.0)


def _in_errors(gap: float, below: float, above: float) -> float:
    """How far a mean lies above or below an edge, in standard errors toward the edge."""
    error = below if gap > 0 else above
    if error:
        return abs(gap) / error
    return math.inf if gap else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's level for each of several p-values.

    In ascending order, the j-th of n p-values is compared with LEVEL / (n - j + 1). From the first
    one above its level on, all are compared with that same level.
    """
    levels = [LEVEL] * len(p_values)
    left = len(p_values)
    for index in np.argsort(p_values, kind="stable"):
        levels[index] = LEVEL / left
        if p_values[index] <= levels[index]:
            left -= 1
    return levels
