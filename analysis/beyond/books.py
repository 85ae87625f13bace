"""What is measured within L and beyond it on the same books: losses, and keys."""

from collections.abc import Callable

import numpy as np

from analysis.comparison import Row, require_alike
from analysis.scores import Score, difference_over_texts

WITHIN = "within L"
BEYOND = "beyond L"
CHANGE = "beyond minus within"
PLACES = (WITHIN, BEYOND, CHANGE)


def paired(row: Row, reference: Row, by_text: Callable[..., np.ndarray]) -> Score:
    """A row's mean minus the reference's, paired by text and by the seeds that both have.

    Where they have none in common, each side's mean over its seeds counts, with its spread.

    Args:
        by_text: the values of records, [records, texts], the texts in the first record's order.

    Raises:
        InputError: the two were not measured on the same texts.
    """
    require_alike(row, reference)
    if shared := set(row.seeds) & set(reference.seeds):
        row = row.of_seeds(shared)
        reference = reference.of_seeds(shared)
    ours = by_text(*row.runs)
    others = by_text(row.first, *reference.runs)[1:]
    return difference_over_texts(ours, others, bool(shared))
