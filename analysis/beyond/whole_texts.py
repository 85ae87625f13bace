"""Losses by position over whole texts, in windows of L': the records of experiments.perplexity --by-position."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.comparison import Comparison, Row, compared, paired
from analysis.results import Results
from analysis.scores import Score, Scores, over_texts, stacked
from analysis.settings import tokens
from core.errors import InputError

ByText = Mapping[str, np.ndarray]  # by title: [seeds, windows, buckets]


def runs(results: Results, trained: bool, factor: float | None = None) -> Comparison:
    """The records of whole texts by position, all with the same windows; each selection of pairs appears once.

    Args:
        factor: only records at this scaling factor; None for all.
    """
    return compared(results, "perplexity", trained, _by_position, twins=False, factor=factor)


def measured_factors(results: Results) -> list[float]:
    """The scaling factors of such records."""
    return sorted(
        {float(run["factor"]) for run in results.records("perplexity") if run["method"] and _by_position(run)}
    )


def _by_position(run: dict) -> bool:
    return run["tokens"] is None and "by_position" in run


def scores(row: Row, reference: Row | None, context_length: int) -> Scores:
    """Losses within and beyond L, their differences from the reference, and the gain from more context."""
    own, edge = losses(row), context_length // row.first["bucket"]
    gaps = None if reference is None or reference is row else differences(row, reference)
    parts = {"within L": slice(edge), "beyond L": slice(edge, None)}
    scores: dict[str, Score | None] = {title: average(own, part) for title, part in parts.items()}
    for title, part in parts.items():
        scores[f"Δ {title}"] = None if gaps is None else average(gaps, part)
    scores[f"{tokens(stride(row.first))} more before"] = more_context(row)
    return scores


def more_context(row: Row) -> Score | None:
    """For the tokens that two successive windows share, the loss in the earlier window minus that in the later one.

    In the earlier window, one stride more of tokens precedes them. The first bucket of the later window does not count.
    None if no text is longer than a window.
    """
    step, seeds = stride(row.first), [windows(run) for run in row.runs]
    shared = next(iter(seeds[0].values())).size - step // row.first["bucket"]
    changes: dict[str, list] = {}
    for title, begin in seeds[0]:
        later = (title, begin + step)
        if shared > 1 and all(later in run for run in seeds):
            pair = [run[title, begin][1 - shared :] - run[later][1:shared] for run in seeds]
            changes.setdefault(title, []).append(pair)
    return average({title: np.swapaxes(pairs, 0, 1) for title, pairs in changes.items()}) if changes else None


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
