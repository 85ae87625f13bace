"""A table: plain text in cells and blocks, and nothing of LaTeX, HTML or Markdown.

Text is Unicode as it is read: n̂, s·k, L', 10⁻³. A back end escapes it and sets the paper's symbols
as it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis.scores import LEAST_TEXTS, Score, by_text, interval, number

NO_RECORD = "no record"
NONE = "–"


@dataclass(frozen=True)
class Cell:
    """What stands in a cell.

    Attributes:
        text: the value.
        small: in small print behind it: an interval, the values of single texts, a count.
        bold: whether it is the best of its column.
    """

    text: str = ""
    small: str = ""
    bold: bool = False


@dataclass(frozen=True)
class Block:
    """Rows under a title and a header of their own.

    Attributes:
        title: what was measured, and how; may be empty.
        header: of every column, that of the rows' names first.
        rows: each as wide as the header.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: of its file and its label.
        caption: what it shows, and how to read it.
        blocks: from top to bottom.
        paper: which of the paper's it is, as "Table 1"; empty for one beyond the paper.
        words: columns of text rather than of numbers.
        sketch: whether it is one, see :meth:`sketched`.
    """

    name: str
    caption: str
    blocks: Sequence[Block]
    paper: str = ""
    words: bool = False
    sketch: bool = False

    @property
    def heading(self) -> str:
        """The caption with what the table is in the paper."""
        whose = f"The paper's {self.paper}:" if self.paper else "Beyond the paper."
        sketch = "A sketch, which decides nothing. " if self.sketch else ""
        return f"{sketch}{whose} {self.caption}"

    def sketched(self) -> Table:
        """The table called a sketch, without intervals and bold numbers; of the caption, which
        explains them, the first sentence."""
        blocks = [
            replace(block, rows=[[*map(_plain, row)] for row in block.rows])
            for block in self.blocks
        ]
        first, *_ = self.caption.split(". ")
        return replace(self, caption=f"{first.rstrip('.')}.", blocks=blocks, sketch=True)


def _plain(cell: Cell) -> Cell:
    """The cell without an interval, which is in brackets, and not bold."""
    return Cell(cell.text, re.sub(r"\[[^]]*\] ?", "", cell.small).strip())


def titles(texts: Iterable[str]) -> str:
    """How many texts, and their titles; where each has a value of its own, in the order of these,
    the alphabet's. A title that comes several times is of as many parts of a text."""
    every = list(texts)
    names = list(dict.fromkeys(every))
    parts = f"{len(every)} parts of " if len(every) > len(names) else ""
    if len(names) == 1:
        return f"{parts}one text: {names[0]}"
    listed = (
        "; ".join(sorted(names)) if len(names) < LEAST_TEXTS else f"from {names[0]} to {names[-1]}"
    )
    return f"{parts}{len(names)} texts: {listed}"


def score_block(
    title: str,
    rows: Iterable[tuple[str, Mapping[str, Score | None]]],
    first: str = "Method",
    digits: int = 1,
    best: Callable[[list[float]], float] | None = max,
    unranked: str = "",
) -> Block:
    """A block of scores, a column for each metric in the order of their first appearance.

    A metric that begins with Δ is a difference, which has a sign and no best.

    Args:
        rows: each one's name and scores.
        first: the header of the rows' names.
        digits: decimals of measured scores.
        best: which mean of a column is bold; None for none.
        unranked: another metric without a best.
    """
    rows = list(rows)
    metrics = list(dict.fromkeys(metric for _, scores in rows for metric in scores))
    tops = {}
    for metric in metrics:
        means = [scores[metric].mean for _, scores in rows if scores.get(metric)]
        if best and means and len(rows) > 1 and metric != unranked and not metric.startswith("Δ"):
            tops[metric] = best(means)
    lines = []
    for name, scores in rows:
        cells = (_cell(scores, metric, digits, tops.get(metric)) for metric in metrics)
        lines.append((Cell(sentence_case(name)), *cells))
    return Block(title, (first, *metrics), lines)


def _cell(scores: Mapping[str, Score | None], metric: str, digits: int, best: float | None) -> Cell:
    """A published number, which has neither interval nor samples, has the two decimals that the
    paper prints."""
    if metric not in scores:
        return Cell(NO_RECORD)
    score = scores[metric]
    if score and score.low is None and score.n is None:
        digits = 2
    return score_cell(score, digits, metric.startswith("Δ"), best)


def score_cell(
    score: Score | None, digits: int, sign: bool = False, best: float | None = None
) -> Cell:
    """A score with its interval, or with the value of each of few texts; bold if it is the best, or
    prints as the best does."""
    if score is None:
        return Cell(NONE)
    value = number(score.mean, digits, sign)
    is_best = best is not None and value == number(best, digits, sign)
    each = by_text(score, digits, sign)
    small = " ".join(filter(None, [interval(score, digits), f"({each})" if each else ""]))
    return Cell(value, small, bold=is_best)


def sentence_case(name: str) -> str:
    """A row's name as it stands first in its line."""
    return name[:1].upper() + name[1:]
