"""Loss minus YaRN's by position, over whole texts.

It shows where in a text a method differs from the rival.
"""

from __future__ import annotations

from analysis import extension, whole_texts
from analysis.results import NotMeasured, Results
from analysis.rows import STATES
from core import rope
from tables.kit.model import Table, noted, score_block
from tables.whole_texts import extent

RIVAL = rope.METHODS[rope.RIVAL].title
CAPTION = (
    f"Loss minus {RIVAL}'s (nats per token) by position in tokens, in windows of L' over the whole of the texts that "
    "the records name. Brackets hold bootstrap 95 % intervals, paired by window."
)


def build(results: Results) -> Table:
    """From the records of experiments.perplexity --by-position."""
    blocks, left_out = [], []
    for trained, state in STATES:
        for factor in whole_texts.measured_factors(results):
            found = whole_texts.runs(results, trained, factor)
            reference = extension.reference(found)
            others = [row for row in found.rows if row is not reference]
            if reference and others:
                left_out += found.left_out
                rows = [
                    (row.setting.name, whole_texts.by_span(row, reference, results.scale.context_length))
                    for row in others
                ]
                title = f"{results.scale.title}, {state}, s = {factor:g}, {extent(found.first)}"
                blocks.append(score_block(title, rows, digits=3, best=None, signed=list(rows[0][1])))
    if not blocks:
        raise NotMeasured(
            f"no whole text by position of {RIVAL} and another method under {results.folder / results.scale.name}; "
            "measure them with `python -m experiments.perplexity --by-position`."
        )
    return noted(Table("position_differences", CAPTION, tuple(blocks)), left_out)
