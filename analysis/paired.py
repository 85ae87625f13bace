"""Differences paired by sample: from the rival, and from the same setting without training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis import extension, whole_texts
from analysis.metrics import OPEN_LLM
from analysis.results import Results
from analysis.rows import Comparison, LeftOut, Row, Setting, agree, compared, factors
from analysis.scores import Score, Scores, SignTest, sign_test, stacked
from eval.intervals import mean_interval, mean_of_means


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
    own, others = _by_task(ours), _by_task(other)
    shared = [key for key in own if key in others]
    scores = [np.array([found[key] for key in shared]) for found in (own, others)]
    return Paired(Score.of(mean_interval(scores[0] - scores[1])), sign_test(*scores))


def _by_task(row: Row) -> dict[tuple[str, str], float]:
    """Scores in per cent, by length and task."""
    by_run = [run["scores"]["tasks"] for run in row.runs]
    return {
        (length, task): float(np.mean([tasks[length][task]["mean"] for tasks in by_run]))
        for length, found in by_run[0].items()
        for task in found
    }


def untrained_of(row: Row, untrained: Comparison) -> Row | None:
    """The same setting without training on the same samples, or None; a learned setting never has one."""
    same = untrained.find(row.setting.method, dict(row.setting.options), row.setting.factor)
    return same if same and agree(same.first, row.first) else None


@dataclass(frozen=True)
class Change:
    """What fine-tuning changes for every setting at a factor, by metric, and the records left out."""

    factor: float
    by_setting: Mapping[Setting, Scores]
    left_out: tuple[LeftOut, ...]


LOSS, WHOLE, AVERAGE = "loss beyond L", "whole texts beyond L", f"Open LLM, {OPEN_LLM['average']}"


def training_changes(results: Results) -> list[Change]:
    """Fine-tuned minus untrained of the same setting: losses in nats per token, the average of Open LLM in points.

    The loss at the beginnings of books is paired by block, the loss on whole texts by window, and Open LLM by item.
    """
    found = []
    for factor in factors(results, "extension", "perplexity", "open_llm"):
        changes: dict[Setting, dict[str, Score]] = {}
        left_out: list[LeftOut] = []

        def whole(row: Row, same: Row) -> Score:
            return whole_texts.gap_beyond(row, same, results.scale.context_length)

        for metric, pair, change in (
            (LOSS, _extension(results, factor), extension.gap),
            (WHOLE, [whole_texts.runs(results, trained, factor) for trained in (False, True)], whole),
            (AVERAGE, _open_llm(results, factor), _average),
        ):
            untrained, tuned = pair
            for row in tuned.rows:
                same = untrained_of(row, untrained)
                score = change(row, same) if same else None
                if score:
                    changes.setdefault(row.setting, {})[metric] = score
                    left_out += [*untrained.left_out, *tuned.left_out]
        if changes:
            ordered = {setting: changes[setting] for setting in sorted(changes, key=lambda setting: setting.order)}
            found.append(Change(factor, ordered, tuple(left_out)))
    return found


def _extension(results: Results, factor: float) -> list[Comparison]:
    untrained = extension.untrained(results, factor)
    return [untrained, extension.fine_tuned(results, untrained)]


def _open_llm(results: Results, factor: float) -> list[Comparison]:
    return [
        compared(results, "open_llm", trained, lambda run: float(run["factor"]) == factor, twins=False)
        for trained in (False, True)
    ]


def _average(row: Row, same: Row) -> Score | None:
    """The change of the Open LLM average; None if a benchmark was not recorded by document."""
    runs = [*row.runs, *same.runs]
    if not all(run.get("by_document", {}).keys() == set(OPEN_LLM) - {"average"} for run in runs):
        return None
    changes = []
    for task in row.first["by_document"]:
        scores = stacked([run["by_document"][task] for run in runs])
        changes.append(100 * (scores[: len(row.runs)].mean(axis=0) - scores[len(row.runs) :].mean(axis=0)))
    return Score.of(mean_of_means(changes))
