"""Compare the selection of pairs by exact floor sums with counting one position at a time.

    python -m tools.bench.selection

It prints ratios measured in one run on one thread. "Plain" is what the authors' released code does: a Python loop over
every pair and position. It uses no tensors here, so it is faster than theirs.
"""

from __future__ import annotations

import json
import math
import resource
import time

import numpy as np

from core.angles import angle_counts
from core.rope import OURS, RopeGeometry, scale
from experiments.kit.records import environment

GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
INTERVALS = 360


def plain_counts(inv_freq: np.ndarray, length: int) -> list[list[int]]:
    """Count one position at a time, in float64."""
    counts = [[0] * INTERVALS for _ in inv_freq]
    for row, theta in zip(counts, inv_freq.tolist()):
        for m in range(length):
            row[int(m * theta % (2 * math.pi) * (INTERVALS / (2 * math.pi))) % INTERVALS] += 1
    return counts


def plain_selection() -> None:
    """The histograms that s = 2 and s = 4 need, in the plain way."""
    inv_freq = GEOMETRY.inv_freq
    for factor in (2, 4):
        plain_counts(inv_freq, GEOMETRY.context_length)
        plain_counts(inv_freq / factor, GEOMETRY.context_length * factor)
        plain_counts(inv_freq, GEOMETRY.context_length * factor)


def selection() -> None:
    """The selections for s = 2 and s = 4 by core.rope."""
    for factor in (2, 4):
        scale(GEOMETRY, OURS, factor)


def seconds(function, repeats: int) -> float:
    """The median of `repeats` timings."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return sorted(times)[repeats // 2]


def main() -> None:
    selection()
    ours, plain = seconds(selection, 15), seconds(plain_selection, 3)
    print(
        f"selection for s = 2 and 4 (d = 128, L = 4096, b = 360): {ours:.3f} s, {plain / ours:.0f} × faster than plain"
    )

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    base = seconds(lambda: angle_counts(GEOMETRY.inv_freq, 10_000), 5)
    long = seconds(lambda: angle_counts(GEOMETRY.inv_freq, 10_000_000), 5)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"counting 10,000,000 positions: {long:.3f} s, {long / base:.1f} × the time of 10,000; "
        f"{grown:.0f} MB more memory"
    )
    print(json.dumps(environment()))


if __name__ == "__main__":
    main()
