"""Loss within and beyond L, over whole texts.

Read in overlapping windows of L'.
"""

from __future__ import annotations

from analysis.beyond import whole_texts
from analysis.results import Results
from analysis.settings import STATES, tokens
from core import rope
from tables.kit.benchmark_table import OVER_TEXTS, seeds
from tables.kit.table import Table, noted, score_block, titles

BASELINE = rope.METHODS[rope.BASELINE].title
CAPTION = (
    "Mean loss (nats per token) by position, in windows of L' tokens over the whole of the texts that a title names. "
    f"{OVER_TEXTS} Δ to {BASELINE} is paired by text. Windows overlap, so most tokens are scored twice: late in one "
    "window and early in the next. The last column is the loss in the earlier window, where more text precedes them, "
    "minus that in the later one; the first positions of the later window are left out."
)


def build(results: Results) -> Table:
    """From the records of experiments.perplexity --by-position."""
    blocks, left_out = [], []
    for trained, state in STATES:
        for factor in whole_texts.measured_factors(results):
            found = whole_texts.runs(results, trained, factor)
            left_out += found.left_out
            if found:
                rival = found.find(rope.BASELINE, {})
                rows = [
                    (row.setting.name, whole_texts.scores(row, rival, results.model.context_length))
                    for row in found.rows
                ]
                title = f"{results.model.title}, {state}{seeds(found.rows)}, s = {factor:g}, {extent(found.first)}"
                signed = [metric for metric in rows[0][1] if not metric.endswith(" L") or metric.startswith("Δ")]
                blocks.append(score_block(title, rows, digits=3, best=None, signed=signed))
    if not blocks:
        raise results.lacks("whole text by position", "perplexity", "--by-position --tokens all")
    return noted(Table("whole_texts", CAPTION, tuple(blocks)), left_out)


def extent(record: dict) -> str:
    """How much was scored."""
    windows = whole_texts.windows(record)
    texts = titles(title for title, _ in windows)
    return f"{len(windows)} windows of {tokens(max(record['lengths']))}, {texts}"
