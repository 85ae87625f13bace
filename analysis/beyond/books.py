"""What is measured within L and beyond it on the same books: losses, and keys."""

import numpy as np

from analysis.comparison import Row
from analysis.results import Record
from analysis.scores import Score, book_of, difference_over_texts

WITHIN = "within L"
BEYOND = "beyond L"
CHANGE = "beyond minus within"
PLACES = (WITHIN, BEYOND, CHANGE)


def texts(run: Record) -> list[str]:
    """The book that each text is of."""
    return [book_of(title) for title in run.scores.get("blocks") or run.scores["keys"]]


def difference(row: Row, by_text: np.ndarray, shared: bool) -> Score:
    """The mean of a row minus that of another, paired by text and by the seeds that they share.

    Where they share none, each side's mean over its seeds counts, with its spread.

    Args:
        row: see :func:`analysis.comparison.matched`.
        by_text: of the row's runs, and then of the other's: [runs, texts].
    """
    ours, others = np.split(by_text, [len(row.runs)])
    return difference_over_texts(ours, others, shared)
