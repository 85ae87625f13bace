"""Attention heads that look k tokens back, under each method.

How much of these heads' attention lies k tokens back, and how much s·k back.
"""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.blocks import INTERVALS, Part, benchmark
from tables.kit.model import Table

CAPTION = (
    "Attention, in per cent, of the heads that in the base model give a third of it or more to the token k places "
    "back (k = 1…8): what lies k places back under each method, and what lies s·k back, on text within L; mean over "
    f"heads, {INTERVALS}; samples are blocks of 128 queries."
)


def build(results: Results) -> Table:
    """From the records of experiments.previous_token."""
    parts = (Part(extent=heads),)
    return benchmark(results, "previous_token", CAPTION, metrics.previous_token, parts=parts, best=None)


def heads(record: dict) -> str:
    """How many there are, for a block's title."""
    return f", {len(record['scores']['heads'])} heads"
