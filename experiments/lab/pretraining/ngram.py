"""A yardstick for a language model: an interpolated Kneser-Ney n-gram model over the same tokens.

P_n(w | h) = max(c(h w) − D, 0) / c(h) + D · N(h ·) / c(h) · P_{n−1}(w | h'). Here h' is the context without its first
token, and N(h ·) is the number of distinct tokens seen after h. Below the highest order, c counts distinct left
neighbours instead of occurrences (Chen and Goodman, 1999). Below the unigrams, every token is equally likely.
"""

from __future__ import annotations

import numpy as np

from core.errors import InputError


class KneserNey:
    """An n-gram model of order n.

    Args:
        tokens: the text, ids below `vocabulary`, [n].
        order: n; vocabulary^n must be below 2^63.
        discount: D.
    """

    def __init__(self, tokens: np.ndarray, vocabulary: int, order: int = 3, discount: float = 0.75) -> None:
        if order * np.log2(vocabulary) >= 63:
            raise InputError(f"{order}-grams over {vocabulary} tokens do not fit in 63 bits; use a lower order.")
        self.vocabulary, self.order, self.discount = vocabulary, order, discount
        grams, counts = np.unique(_grams(tokens, order, vocabulary), return_counts=True)
        self.levels = []
        for n in range(order, 0, -1):
            contexts, begins = np.unique(grams // vocabulary, return_index=True)
            totals = np.add.reduceat(counts, begins)
            distinct = np.diff(np.append(begins, len(grams)))
            self.levels.append((grams, counts, contexts, totals, distinct))
            grams, counts = np.unique(grams % vocabulary ** (n - 1), return_counts=True)
        self.levels.reverse()  # unigrams first

    def losses(self, tokens: np.ndarray) -> np.ndarray:
        """−ln P in nats of every token from the n-th on, given the n − 1 before it, [len(tokens) − n + 1]."""
        every = _grams(tokens, self.order, self.vocabulary)
        probability = np.full(len(every), 1 / self.vocabulary)
        for n, level in enumerate(self.levels, start=1):
            grams, counts, contexts, totals, distinct = level
            asked = every % self.vocabulary**n
            count = _look_up(grams, counts, asked)
            total = _look_up(contexts, totals, asked // self.vocabulary)
            kinds = _look_up(contexts, distinct, asked // self.vocabulary)
            seen = np.maximum(total, 1)
            mixed = np.maximum(count - self.discount, 0) / seen + self.discount * kinds / seen * probability
            probability = np.where(total > 0, mixed, probability)
        return -np.log(probability)


def _grams(tokens: np.ndarray, order: int, vocabulary: int) -> np.ndarray:
    """Every run of `order` tokens as one number."""
    tokens = np.asarray(tokens, dtype=np.int64)
    count = len(tokens) - order + 1
    if count < 1:
        raise InputError(f"{len(tokens)} tokens are too few for {order}-grams; give a longer text.")
    made = np.zeros(count, dtype=np.int64)
    for offset in range(order):
        made = made * vocabulary + tokens[offset : offset + count]
    return made


def _look_up(known: np.ndarray, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """For each number asked for, values[i] if it equals known[i], and 0 if it is not in `known`."""
    places = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[places] == asked, values[places], 0)
