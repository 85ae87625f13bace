"""What is measured within L and beyond it on the same books: losses, and keys."""

import numpy as np

from analysis.comparison import Comparison, Row, comparisons, factors
from analysis.results import Record, Results
from analysis.scores import Score, book_of, difference_over_texts
from analysis.settings import STATES

WITHIN = "within L"
BEYOND = "beyond L"
CHANGE = "beyond minus within"
PLACES = (WITHIN, BEYOND, CHANGE)


def texts(run: Record) -> list[str]:
    """The book that each text is of."""
    return [book_of(title) for title in run.scores.get("blocks") or run.scores["keys"]]


def sets(results: Results, experiment: str) -> list[Comparison]:
    """Every comparable set: by factor those without training, then the fine-tuned ones, the largest
    first."""
    return [
        rows
        for factor in factors(results, experiment)
        for trained in STATES
        for rows in comparisons(results, experiment, trained, factor)
    ]


def difference(row: Row, by_text: np.ndarray, shared: bool) -> Score:
    """The mean of a row minus that of another, paired by text and by the seeds that they share.

    Where they share none, each side's mean over its seeds counts, with its spread.

    Args:
        row: see :func:`analysis.comparison.matched`.
        by_text: of the row's runs, and then of the other's: [runs, texts].
    """
    ours, others = np.split(by_text, [len(row.runs)])
    return difference_over_texts(ours, others, shared)
