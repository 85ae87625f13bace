"""Loss by position at the beginnings of texts: the records of experiments.beyond.loss_by_position.

A text may be a part of a book; a book's loss is the mean over its parts.
"""

import functools

import numpy as np

from analysis.beyond.books import BEYOND, CHANGE, PLACES, WITHIN, difference, texts
from analysis.comparison import Comparison, Row, comparisons, factors, matched
from analysis.results import Record, Results
from analysis.scores import (
    LEAST_TEXTS,
    Score,
    Scores,
    over_seeds,
    over_texts,
    stacked,
)
from analysis.settings import span


def measured_factors(results: Results) -> list[float]:
    """The scaling factors of the records."""
    return factors(results, "loss_by_position")


def samples(results: Results, factor: float, trained: bool) -> list[Comparison]:
    """The comparable sets without training, or the fine-tuned ones, on at least LEAST_TEXTS texts,
    the largest first."""
    sets = comparisons(results, "loss_by_position", trained, factor)
    return [rows for rows in sets if len({*texts(rows.first)}) >= LEAST_TEXTS]


def ranges(run: Record) -> Scores:
    """The mean loss within L and in the two halves of the range beyond it."""
    losses = by_text(run)
    return {
        span(each["start"], each["end"]): over_texts(_mean_between(run, losses, each))
        for each in run.scores["ranges"]
    }


def curve(run: Record) -> tuple[np.ndarray, np.ndarray]:
    """Positions [buckets] in tokens, and the mean over texts [buckets] in nats per token."""
    losses = by_text(run)
    means = [
        float(_mean_between(run, losses, bucket)[0].mean()) for bucket in run.scores["buckets"]
    ]
    return np.array(
        [(bucket["start"] + bucket["end"]) / 2 for bucket in run.scores["buckets"]]
    ), np.array(means)


def _mean_between(run: Record, losses: np.ndarray, positions: dict) -> np.ndarray:
    """Of losses [seeds, texts, blocks], the mean over positions: [seeds, texts]."""
    start, end = (positions[edge] // run.scores["block"] for edge in ("start", "end"))
    return losses[:, :, start:end].mean(axis=2)


def blocks(*runs: Record) -> np.ndarray:
    """The losses of records on the same texts, [records, texts, blocks], in the first record's
    order."""
    titles = runs[0].scores["blocks"]
    return stacked([[run.scores["blocks"][title] for title in titles] for run in runs])


@functools.cache
def by_text(*runs: Record) -> np.ndarray:
    """:func:`blocks`, each book's mean over its parts: [records, books, blocks], in the order of
    the titles."""
    losses = blocks(*runs)
    of = np.array(texts(runs[0]))
    return np.stack([losses[:, of == title].mean(axis=1) for title in np.unique(of)], axis=1)


@functools.cache
def places(run: Record) -> Scores:
    """The loss within L, beyond it, and the second minus the first, over texts."""
    losses = by_text(run)
    return {where: over_texts(_side(run, losses, where)) for where in PLACES}


def values(row: Row, where: str = BEYOND) -> np.ndarray:
    """The loss in one of PLACES, [seeds, texts]."""
    return _side(row.first, by_text(*row.runs), where)


def level(row: Row, where: str = BEYOND) -> Score:
    """The loss in one of PLACES, over texts and seeds."""
    return over_seeds([places(run) for run in row.runs])[where]


def gap(row: Row, reference: Row, where: str = BEYOND) -> Score:
    """:func:`level` minus the reference's, see :func:`analysis.beyond.books.difference`.

    Raises:
        InputError: the two were not measured on the same texts.
    """
    row, reference, shared = matched(row, reference)
    losses = _side(row.first, by_text(*row.runs, *reference.runs), where)
    return difference(row, losses, shared)


def gaps_by_position(row: Row, reference: Row) -> list[Score]:
    """The loss minus the reference's in each bucket of positions, see :func:`gap`."""
    return _gaps(row, reference, row.first.scores["buckets"])


def gaps_by_range(row: Row, reference: Row) -> Scores:
    """The same within L and in the two halves of the range beyond it."""
    parts = row.first.scores["ranges"]
    names = [span(part["start"], part["end"]) for part in parts]
    return dict(zip(names, _gaps(row, reference, parts)))


def _gaps(row: Row, reference: Row, positions: list[dict]) -> list[Score]:
    row, reference, shared = matched(row, reference)
    losses = by_text(*row.runs, *reference.runs)
    means = (_mean_between(row.first, losses, part) for part in positions)
    return [difference(row, each, shared) for each in means]


def slope(row: Row, reference: Row) -> Score:
    """How much the loss minus the reference's changes from the beginning of a text to its end: the
    least-squares line over positions, see :func:`gap`."""
    row, reference, shared = matched(row, reference)
    losses = by_text(*row.runs, *reference.runs)
    places = np.linspace(-0.5, 0.5, 2 * losses.shape[2] + 1)[1::2]  # middles of the blocks
    return difference(row, losses @ places / (places @ places), shared)


def _side(run: Record, losses: np.ndarray, where: str) -> np.ndarray:
    """Of losses [seeds, texts, blocks], the mean there: [seeds, texts]."""
    edge = run.scores["ranges"][1]["start"] // run.scores["block"]
    within, beyond = (side.mean(axis=2) for side in (losses[:, :, :edge], losses[:, :, edge:]))
    return {WITHIN: within, BEYOND: beyond, CHANGE: beyond - within}[where]
