"""Differences paired by sample: from the rival, and from the same setting without training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.comparison import Comparison, Row, agree
from analysis.scores import Score, SignTest, sign_test
from eval.intervals import mean_interval


@dataclass(frozen=True)
class Paired:
    """One setting against another on the same samples.

    Attributes:
        difference: the difference of the means, in points, with a bootstrap interval.
        test: how many samples are answered better and worse.
    """

    difference: Score
    test: SignTest


def ruler(ours: Row, other: Row) -> Paired:
    """RULER, paired by task and length; each is a mean over samples and seeds."""
    our_scores, other_scores = _by_task(ours), _by_task(other)
    shared = [key for key in our_scores if key in other_scores]
    scores = [np.array([by_task[key] for key in shared]) for by_task in (our_scores, other_scores)]
    return Paired(Score.of(mean_interval(scores[0] - scores[1])), sign_test(*scores))


def _by_task(row: Row) -> dict[tuple[str, str], float]:
    """Scores in per cent, by length and task."""
    by_run = [run["scores"]["tasks"] for run in row.runs]
    return {
        (length, task): float(np.mean([tasks[length][task]["mean"] for tasks in by_run]))
        for length, by_name in by_run[0].items()
        for task in by_name
    }


def untrained_of(row: Row, untrained: Comparison) -> Row | None:
    """The same setting without training on the same samples, or None; a learned setting never has one."""
    same = untrained.find(row.setting.method, dict(row.setting.options), row.setting.factor)
    return same if same and agree(same.first, row.first) else None
