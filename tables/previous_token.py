"""Attention heads that look k tokens back, under each method.

How much of these heads' attention lies k tokens back, and how much s·k back.
"""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.blocks import INTERVALS, Part, benchmark
from tables.kit.model import Table

CAPTION = (
    "Heads that look a fixed number of tokens back: in the base model they give at least a third of their attention "
    "to the token k places back, for a k from 1 to 8. Shown is the per cent of their attention that goes k and s·k "
    f"places back under each method, on text within L, as the mean over heads, {INTERVALS}; a sample is a block of "
    "128 queries."
)


def build(results: Results) -> Table:
    """From the records of experiments.previous_token."""
    parts = (Part(extent=heads),)
    return benchmark(results, "previous_token", CAPTION, metrics.previous_token, parts=parts, best=None)


def heads(record: dict) -> str:
    """How many there are, for a block's title."""
    return f", {len(record['scores']['heads'])} heads"
