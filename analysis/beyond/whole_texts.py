"""Loss by position over whole texts in windows of L': the records of experiments.perplexity --by-position."""

from __future__ import annotations

import numpy as np

from analysis.comparison import Comparison, Row, compared
from analysis.results import Results
from analysis.scores import Score, Scores, stacked
from analysis.settings import tokens
from core.errors import InputError
from eval.intervals import resampled_interval, resampled_ratio


def runs(results: Results, trained: bool, factor: float | None = None) -> Comparison:
    """The records of whole texts by position, all with the same windows; each selection of pairs appears once.

    Args:
        factor: only records at this scaling factor; None for all.
    """

    def wanted(run: dict) -> bool:
        return _by_position(run) and factor in (None, float(run["factor"]))

    return compared(results, "perplexity", trained, wanted, twins=False)


def measured_factors(results: Results) -> list[float]:
    """The scaling factors of such records."""
    return sorted(
        {float(run["factor"]) for run in results.records("perplexity") if run["method"] and _by_position(run)}
    )


def _by_position(run: dict) -> bool:
    return run["tokens"] is None and "by_position" in run


def scores(row: Row, reference: Row | None, context_length: int) -> Scores:
    """Losses within and beyond L, their differences from the reference, and the gain from more context."""
    own, edge = over_seeds(row), context_length // row.first["bucket"]
    gaps = None if reference is None or reference is row else differences(row, reference)
    parts = {"within L": slice(edge), "beyond L": slice(edge, None)}
    found: dict[str, Score | None] = {title: average(own[:, part]) for title, part in parts.items()}
    for title, part in parts.items():
        found[f"Δ {title}"] = None if gaps is None else average(gaps[:, part])
    more = [more_context(run) for run in row.runs]
    alone = not all(map(len, more))  # if no text is longer than a window
    found[f"{tokens(stride(row.first))} more before"] = None if alone else average(stacked(more).mean(axis=0)[:, 1:])
    return found


def over_seeds(row: Row) -> np.ndarray:
    """A row's losses, averaged over seeds: [windows, buckets]."""
    _check_same_windows(*row.runs)
    return stacked([losses(run) for run in row.runs]).mean(axis=0)


def differences(row: Row, reference: Row) -> np.ndarray:
    """A row's losses minus another's, window by window: [windows, buckets]."""
    _check_same_windows(row.first, reference.first)
    found = stacked([over_seeds(row), over_seeds(reference)])
    return found[0] - found[1]


def _check_same_windows(first: dict, *others: dict) -> None:
    for other in others:
        if windows(first).keys() != windows(other).keys():
            raise InputError(f"{first['file']} and {other['file']} have different windows; measure one again.")


def windows(run: dict) -> dict[tuple[str, int], np.ndarray]:
    """The losses per bucket of positions [buckets] of every window of the longest length, by text and first position.

    They are NaN after a text's end, and where the text's last positions do not fill a bucket.
    """
    longest, found = max(run["lengths"]), {}
    for key, values in run["by_position"].items():
        title, length, begin = key.rsplit("/", 2)
        if int(length) == longest:
            found[title, int(begin)] = values
    if not found:
        raise InputError(f"{run['file']} has no loss by position in windows of {longest} tokens; measure it again.")
    buckets = max(map(len, found.values()))
    for place, values in found.items():
        full = len(values) if len(values) == buckets else len(values) - 1
        found[place] = np.pad(np.array(values[:full]), (0, buckets - full), constant_values=np.nan)
    return dict(sorted(found.items()))


def losses(run: dict) -> np.ndarray:
    """The losses of :func:`windows` as an array [windows, buckets]."""
    return np.array(list(windows(run).values()))


def more_context(run: dict) -> np.ndarray:
    """For the tokens that two successive windows share, the earlier's loss minus the later's: [pairs, buckets].

    In the earlier window, one stride more of tokens precedes them.
    """
    found, step = windows(run), stride(run)
    shared = next(iter(found.values())).size - step // run["bucket"]
    pairs = [(window, found.get((title, begin + step))) for (title, begin), window in found.items()]
    changes = [earlier[-shared:] - later[:shared] for earlier, later in pairs if later is not None and shared > 0]
    return np.array(changes).reshape(len(changes), max(shared, 0))


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
