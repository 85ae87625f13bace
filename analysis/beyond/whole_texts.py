"""Loss by position over whole texts in windows of L': the records of experiments.perplexity --by-position."""

from __future__ import annotations

import numpy as np

from analysis.comparison import Comparison, Row, compared
from analysis.perplexity_windows import average, differences, over_seeds, stride, windows
from analysis.results import Results
from analysis.scores import Score, Scores, stacked
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
    losses, edge = over_seeds(row), context_length // row.first["bucket"]
    gaps = None if reference is None or reference is row else differences(row, reference)
    parts = {"within L": slice(edge), "beyond L": slice(edge, None)}
    scores: dict[str, Score | None] = {title: average(losses[:, part]) for title, part in parts.items()}
    for title, part in parts.items():
        scores[f"Δ {title}"] = None if gaps is None else average(gaps[:, part])
    more = [more_context(run) for run in row.runs]
    alone = not all(map(len, more))  # if no text is longer than a window
    scores[f"{tokens(stride(row.first))} more before"] = None if alone else average(stacked(more).mean(axis=0)[:, 1:])
    return scores


def more_context(run: dict) -> np.ndarray:
    """For the tokens that two successive windows share, the earlier's loss minus the later's: [pairs, buckets].

    In the earlier window, one stride more of tokens precedes them.
    """
    by_window, step = windows(run), stride(run)
    shared = next(iter(by_window.values())).size - step // run["bucket"]
    pairs = [(window, by_window.get((title, begin + step))) for (title, begin), window in by_window.items()]
    changes = [earlier[-shared:] - later[:shared] for earlier, later in pairs if later is not None and shared > 0]
    return np.array(changes).reshape(len(changes), max(shared, 0))
