"""Loss by position over whole texts in windows of L': the records of experiments.perplexity --by-position."""

from __future__ import annotations

import numpy as np

from analysis.comparison import Comparison, Row, compared
from analysis.perplexity_windows import average, differences, losses, stride, windows
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import tokens


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
