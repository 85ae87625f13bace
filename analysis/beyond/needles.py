"""Keys in books: the records of experiments.beyond.needles.

A book's value is the mean over its keys within L, or beyond it. A key lies beyond L if it begins
more than L tokens before the question.
"""

from __future__ import annotations

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
from eval.beyond import ranking

GUESS = ranking.GUESS
NATS = "nats"
FOUND = "found"

Place = str | int  # one of PLACES, or the number of a key among those of a text


def measured_factors(results: Results) -> list[float]:
    """The scaling factors of the records."""
    return factors(results, "needles")


def samples(results: Results, factor: float, trained: bool) -> list[Comparison]:
    """The comparable sets without training, or the fine-tuned ones, with keys within L and beyond
    it in at least LEAST_TEXTS books, the largest first."""
    return [
        rows
        for rows in comparisons(results, "needles", trained, factor)
        if len({*texts(rows.first)}) >= LEAST_TEXTS and CHANGE in sides(rows.first)
    ]


def distances(run: Record) -> np.ndarray:
    """How far before the question each key begins, the mean over texts: tokens [keys]."""
    return _of_keys(run, run, "distance").mean(axis=0)


def by_distance(run: Record) -> np.ndarray:
    """Nats of the keys at each of :func:`distances`, the mean over texts: [keys]."""
    return _of_keys(run, run, NATS).mean(axis=0)


@functools.cache
def _of_keys(first: Record, run: Record, what: str) -> np.ndarray:
    """[texts, keys] of a record, in the order of the first's texts, which are the same."""
    keys = run.scores["keys"]
    return stacked([[float(key[what]) for key in keys[title]] for title in first.scores["keys"]])


def _beyond(run: Record) -> np.ndarray:
    """Whether each key lies beyond L, [texts, keys]."""
    edge = max(each["start"] for each in run.scores["ranges"])
    return _of_keys(run, run, "distance") > (edge or np.inf)


def nearest_beyond(run: Record) -> list[int]:
    """The numbers of the keys that lie beyond L in every text, the nearest first."""
    beyond = np.flatnonzero(_beyond(run).all(axis=0))
    nearest = np.argsort(distances(run)[beyond])
    return beyond[nearest].tolist()


def _chosen(run: Record, where: Place) -> np.ndarray:
    """Whether each key is of that place, [texts, keys]."""
    beyond = _beyond(run)
    if isinstance(where, int):
        return np.broadcast_to(np.arange(beyond.shape[1]) == where, beyond.shape)
    return beyond == (where == BEYOND)


@functools.cache
def by_text(*runs: Record, where: Place = BEYOND, what: str = NATS) -> np.ndarray:
    """The mean over the keys of each book in a place, [records, books], in the order of the books'
    titles."""
    if where == CHANGE:
        beyond, within = (by_text(*runs, where=each, what=what) for each in (BEYOND, WITHIN))
        return beyond - within
    chosen = _chosen(runs[0], where)
    values = np.stack([_of_keys(runs[0], run, what) for run in runs])
    books = np.array(texts(runs[0]))
    return np.stack(
        [
            values[:, books == book][:, chosen[books == book]].mean(axis=1)
            for book in np.unique(books)
        ],
        axis=1,
    )


def sides(run: Record) -> list[str]:
    """Where a record has keys: of PLACES, those in which each book has some."""
    far = _beyond(run)
    within = (~far).any(axis=1).all()
    beyond = far.any(axis=1).all()
    there = zip(PLACES, (within, beyond, within and beyond), strict=True)
    return [where for where, has_keys in there if has_keys]


@functools.cache
def places(run: Record) -> Scores:
    """Nats a key within L, beyond it, and the second minus the first, over books; and the per cent
    that is found."""
    where_keys_are = sides(run)
    nats = {where: over_texts(by_text(run, where=where)) for where in where_keys_are}
    found = {
        f"{FOUND} {where}": over_texts(100 * by_text(run, where=where, what=FOUND)).within_100()
        for where in where_keys_are
        if where != CHANGE
    }
    return nats | found


def values(row: Row, where: str = BEYOND) -> np.ndarray:
    """Nats a key in one of PLACES, [seeds, books]."""
    return by_text(*row.runs, where=where)


def level(row: Row, where: str = BEYOND) -> Score | None:
    """Nats a key in one of PLACES, over books and seeds; None where there are no keys."""
    return over_seeds([places(run) for run in row.runs]).get(where)


def gap(row: Row, reference: Row, where: Place = BEYOND) -> Score | None:
    """Nats a key in a place minus the reference's, see :func:`analysis.beyond.books.difference`;
    None where there are no keys."""
    if where in PLACES and where not in sides(row.first):
        return None
    row, reference, shared = matched(row, reference)
    nats = by_text(*row.runs, *reference.runs, where=where)
    return difference(row, nats, shared)


def found(row: Row, where: Place) -> tuple[int, int]:
    """How many keys are found in a place, and of how many; added up over seeds."""
    chosen = _chosen(row.first, where)
    of_runs = [_of_keys(row.first, run, FOUND)[chosen] for run in row.runs]
    return int(sum(each.sum() for each in of_runs)), sum(map(len, of_runs))
