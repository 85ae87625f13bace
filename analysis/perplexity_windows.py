"""Losses in windows of the longest length, by position: from records of experiments.perplexity --by-position."""

from __future__ import annotations

import numpy as np

from analysis.comparison import Row
from analysis.scores import Score, stacked
from core.errors import InputError
from eval.intervals import resampled_interval, resampled_ratio


def over_seeds(row: Row) -> np.ndarray:
    """A row's losses, averaged over seeds: [windows, buckets]."""
    _check_same_windows(*row.runs)
    return stacked([losses(run) for run in row.runs]).mean(axis=0)


def differences(row: Row, reference: Row) -> np.ndarray:
    """A row's losses minus another's, window by window: [windows, buckets]."""
    _check_same_windows(row.first, reference.first)
    losses = stacked([over_seeds(row), over_seeds(reference)])
    return losses[0] - losses[1]


def _check_same_windows(first: dict, *others: dict) -> None:
    for other in others:
        if windows(first).keys() != windows(other).keys():
            raise InputError(f"{first['file']} and {other['file']} have different windows; measure one again.")


def windows(run: dict) -> dict[tuple[str, int], np.ndarray]:
    """The losses per bucket of positions [buckets] of every window of the longest length, by text and first position.

    They are NaN after a text's end, and where the text's last positions do not fill a bucket.
    """
    longest, by_window = max(run["lengths"]), {}
    for key, values in run["by_position"].items():
        title, length, begin = key.rsplit("/", 2)
        if int(length) == longest:
            by_window[title, int(begin)] = values
    if not by_window:
        raise InputError(f"{run['file']} has no loss by position in windows of {longest} tokens; measure it again.")
    buckets = max(map(len, by_window.values()))
    for place, values in by_window.items():
        full = len(values) if len(values) == buckets else len(values) - 1
        by_window[place] = np.pad(np.array(values[:full]), (0, buckets - full), constant_values=np.nan)
    return dict(sorted(by_window.items()))


def losses(run: dict) -> np.ndarray:
    """The losses of :func:`windows` as an array [windows, buckets]."""
    return np.array(list(windows(run).values()))


def average(values: np.ndarray) -> Score:
    """The mean over windows and buckets [windows, buckets], without NaN, with a bootstrap interval over windows."""
    sums, counts = np.nansum(values, axis=1), np.count_nonzero(~np.isnan(values), axis=1)
    sums, counts = sums[counts > 0], counts[counts > 0]
    if not len(sums):
        raise InputError("no text was scored at the positions that are compared; measure in longer windows.")
    return Score.of(resampled_interval(sums.sum() / counts.sum(), resampled_ratio(sums, counts), len(sums)))


def stride(run: dict) -> int:
    """The number of tokens from one of the longest windows to the next."""
    strides = run["stride"] if isinstance(run["stride"], list) else [run["stride"]] * len(run["lengths"])
    if len(strides) != len(run["lengths"]):
        raise InputError(f"{run['file']} does not have one stride for each length; measure it again.")
    return strides[int(np.argmax(run["lengths"]))]
