"""How the positions of a context are divided into blocks and buckets."""

from __future__ import annotations

import math

from core.errors import InputError

# positions per point of the curve, or an eighth of a shorter L, if L and L' are multiples of it
BUCKET = 1024
# Consecutive tokens that a bootstrap resamples together, because neighbouring losses depend on each
# other.
BLOCK = 128
SHORTEST_BLOCK = 16


def divisions(context_length: int, length: int) -> tuple[int, int]:
    """The tokens in a block of the bootstrap and the positions in a bucket of the curve; both
    divide L and L' − L.

    They are the largest divisors up to BLOCK, and up to BUCKET or an eighth of L, whichever is
    less. A bucket holds whole blocks, and the range beyond L holds at least two blocks.

    Raises:
        InputError: L' exceeds L by too little, or there is no such divisor.
    """
    beyond = length - context_length
    common = math.gcd(context_length, beyond)
    block = max((n for n in range(1, min(BLOCK, beyond // 2) + 1) if common % n == 0), default=0)
    if block < SHORTEST_BLOCK:
        raise InputError(
            f"L = {context_length} and L' = {length} cannot be divided into equal blocks of "
            f"{SHORTEST_BLOCK} to "
            f"{BLOCK} tokens; choose another factor."
        )
    largest = max(min(BUCKET, context_length // 8), block)
    return block, max(n for n in range(block, largest + 1, block) if common % n == 0)
