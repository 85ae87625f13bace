"""Losses in windows of the longest length, by position: from records of experiments.perplexity --by-position."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.comparison import Row, paired
from analysis.scores import Score, over_texts, stacked
from core.errors import InputError

ByText = Mapping[str, np.ndarray]  # by title: [seeds, windows, buckets]


def losses(row: Row) -> ByText:
    """The losses of each text."""
    return _by_text(row.first, _all(row))


def differences(row: Row, reference: Row) -> ByText:
    """The losses minus another row's, window by window; for seeds see :func:`analysis.comparison.paired`."""
    _check_same_windows(row.first, reference.first)
    return _by_text(row.first, paired(row, reference, _all))


def _all(row: Row) -> np.ndarray:
    """The losses in all windows: [seeds, windows, buckets]."""
    _check_same_windows(*row.runs)
    return stacked([list(windows(run).values()) for run in row.runs])


def _by_text(run: dict, values: np.ndarray) -> ByText:
    of = np.array([title for title, _ in windows(run)])
    return {str(title): values[:, of == title] for title in np.unique(of)}


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


def average(values: ByText, part: slice = slice(None)) -> Score:
    """The mean over texts of each text's mean over windows and buckets, without NaN.

    Args:
        part: which buckets.

    Raises:
        InputError: no text has these positions; one that has not does not count.
    """
    parts = [of_text[:, :, part] for of_text in values.values()]
    reached = [np.nanmean(of_text, axis=(1, 2)) for of_text in parts if not np.isnan(of_text).all()]
    if not reached:
        raise InputError("no text was scored at the positions that are compared; measure in longer windows.")
    return over_texts(np.transpose(reached))


def stride(run: dict) -> int:
    """The number of tokens from one of the longest windows to the next."""
    strides = run["stride"] if isinstance(run["stride"], list) else [run["stride"]] * len(run["lengths"])
    if len(strides) != len(run["lengths"]):
        raise InputError(f"{run['file']} does not have one stride for each length; measure it again.")
    return strides[int(np.argmax(run["lengths"]))]
