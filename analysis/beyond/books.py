"""What is measured within L and beyond it on the same books: losses, and keys."""

from analysis.results import Record
from analysis.scores import book_of

WITHIN = "within L"
BEYOND = "beyond L"
CHANGE = "beyond minus within"
PLACES = (WITHIN, BEYOND, CHANGE)


def texts(run: Record) -> list[str]:
    """The book that each text is of."""
    return [book_of(title) for title in run.scores.get("blocks") or run.scores["keys"]]
