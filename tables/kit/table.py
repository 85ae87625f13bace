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
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: of its file and its label.
        caption: what it shows, and how to read it.
        blocks: from top to bottom.
        paper: which of the paper's it is, as "Table 1"; empty for one beyond the paper.
        words: columns of text rather than of numbers.
        sketch: what it is called where its records are a sketch; see :meth:`sketched`.
    """

    name: str
    caption: str
    blocks: tuple[Block, ...]
    paper: str = ""
    words: bool = False
    sketch: str = ""

    @property
    def heading(self) -> str:
        """The caption with what the table is in the paper."""
        whose = f"The paper's {self.paper}:" if self.paper else "Beyond the paper."
        return f"{self.sketch} {whose} {self.caption}".strip()

    def sketched(self, size: str) -> Table:
        """The table called a sketch, without intervals and bold numbers; of the caption, which
        explains them, the first sentence.

        Args:
            size: of how many steps and items.
        """
        blocks = []
        for block in self.blocks:
            rows = (tuple(map(_plain, row)) for row in block.rows)
            blocks.append(replace(block, rows=tuple(rows)))
        first, *_ = self.caption.split(". ")
        sketch = f"A sketch{size}, which decides nothing."
        return replace(self, caption=f"{first.rstrip('.')}.", blocks=tuple(blocks), sketch=sketch)


def _plain(cell: Cell) -> Cell:
    """The cell without an interval, which is in brackets, and not bold."""
    return Cell(cell.text, re.sub(r"\[[^]]*\] ?", "", cell.small).strip())


def probability(p: float) -> str:
    """A p value with two decimals; of less than 0.005, its power of ten."""
    if p >= 0.005:
        return f"{p:.2f}"
    digit, power = f"{p:.0e}".split("e")
    return f"{digit}·10{str(int(power)).translate(_RAISED)}"


def titles(texts: Iterable[str]) -> str:
    """How many texts, and their titles; where each has a value of its own, in the order of these,
    the alphabet's."""
    names = list(dict.fromkeys(texts))
    if len(names) == 1:
        return f"one text: {names[0]}"
    listed = (
        "; ".join(sorted(names)) if len(names) < LEAST_TEXTS else f"from {names[0]} to {names[-1]}"
    )
    return f"{len(names)} texts: {listed}"


def score_cell(
    score: Score | None, digits: int = 1, sign: bool = False, bold: bool = False
) -> Cell:
    """A score; a dash where there is nothing to compare, published numbers with the two decimals
    they have."""
    if score is None:
        return Cell(NONE)
    digits = 2 if score.low is None and score.n is None else digits
    each = by_text(score, digits, sign)
    small = " ".join(filter(None, [interval(score, digits), f"({each})" if each else ""]))
    return Cell(number(score.mean, digits, sign), small, bold)


def score_block(
    title: str,
    rows: Iterable[tuple[str, Mapping[str, Score | None]]],
    first: str = "Method",
    digits: int = 1,
    best: Callable[[list[float]], float] | None = max,
    unranked: Sequence[str] = (),
    signed: Sequence[str] = (),
) -> Block:
    """A block of scores, a column for each metric in the order of their first appearance.

    Args:
        rows: each one's name and scores.
        first: the header of the rows' names.
        digits: decimals of measured scores.
        best: which mean of a column is bold; None for none.
        unranked: metrics without a best.
        signed: metrics that are differences.
    """
    rows = list(rows)
    metrics = list(dict.fromkeys(metric for _, scores in rows for metric in scores))
    bold = {}
    for metric in metrics:
        means = [scores[metric].mean for _, scores in rows if scores.get(metric)]
        ranked = best and metric not in unranked and len(rows) > 1
        bold[metric] = best(means) if ranked and means else None
    lines = []
    for name, scores in rows:
        cells = [Cell(sentence_case(name))]
        for metric in metrics:
            if metric not in scores:
                cells.append(Cell(NO_RECORD))
                continue
            score = scores[metric]
            is_best = score is not None and score.mean == bold[metric]
            cells.append(score_cell(score, digits, metric in signed, is_best))
        lines.append(tuple(cells))
    return Block(title, (first, *metrics), tuple(lines))


def sentence_case(name: str) -> str:
    """A row's name as it stands first in its line."""
    return name[:1].upper() + name[1:]
