"""Loss by position: into which blocks and buckets a context is divided, and the tokens of a book that fill it."""

from __future__ import annotations

import math

import torch

from core.errors import InputError
from experiments.lab import texts

BUCKET = 1024  # positions per point of the curve, or an eighth of a shorter L, where L and L' are multiples of it
# Consecutive tokens that a bootstrap resamples together, as neighbouring losses depend on each other.
BLOCK, SHORTEST_BLOCK = 128, 16


def divisions(context_length: int, length: int) -> tuple[int, int]:
    """Tokens in a block of the bootstrap and positions in a bucket of the curve: divisors of L and of L' − L.

    They are BLOCK and BUCKET, or an eighth of L where that is less, if those divide both, else the largest smaller
    ones; a bucket holds whole blocks, and what lies beyond L at least two.

    Raises:
        InputError: L' exceeds L by too little, or the two have no such divisor.
    """
    beyond = length - context_length
    common = math.gcd(context_length, beyond)
    block = max((n for n in range(1, min(BLOCK, beyond // 2) + 1) if common % n == 0), default=0)
    if block < SHORTEST_BLOCK:
        raise InputError(
            f"L = {context_length} and L' = {length} cannot be divided into equal blocks of {SHORTEST_BLOCK} to "
            f"{BLOCK} tokens; choose another factor."
        )
    largest = max(min(BUCKET, context_length // 8), block)
    return block, max(n for n in range(block, largest + 1, block) if common % n == 0)


def book_tokens(tokenizer, book: texts.Book, length: int) -> torch.Tensor:
    """The book's first length + 1 tokens, without special tokens."""
    found = texts.tokens(tokenizer, book.text, length + 1)
    if len(found) <= length:
        raise InputError(f"{book.title!r} has {len(found)} tokens; scoring {length} positions needs a longer text.")
    return found
