"""A table as Markdown whose columns are aligned, so that it reads on a terminal, too."""

from __future__ import annotations

import re
import textwrap
import unicodedata

from tables.kit.table import Block, Cell, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|])")


def render(table: Table, caption: bool = True, escape: bool = True) -> str:
    """Caption, blocks and notes.

    Args:
        escape: whether marks of Markdown are escaped; a terminal shows them as they are.
    """
    words = text if escape else textwrap.fill
    parts = [words(table.heading)] if caption else []
    for block in table.aligned:
        parts += [f"*{words(block.title)}*"] if block.title else []
        parts += [_rows(block, table.words, escape)] if block.rows else []
    return "\n\n".join([*parts, *map(words, table.notes)])


def _rows(block: Block, words: bool, escape: bool) -> str:
    mark = text if escape else str
    lines = [list(map(mark, block.header)), *([_cell(cell, mark) for cell in row] for row in block.rows)]
    widths = [max(map(_width, column)) for column in zip(*lines)]
    left = [words or not place for place in range(len(widths))]
    lines.insert(1, ["-" * width if at_left else "-" * (width - 1) + ":" for width, at_left in zip(widths, left)])
    return "\n".join(f"| {' | '.join(map(_set, line, widths, left))} |" for line in lines)


def _cell(cell: Cell, mark) -> str:
    value = f"**{mark(cell.text)}**" if cell.bold and cell.text else mark(cell.text)
    return f"{value} {cell.small.replace('|', chr(92) + '|')}".strip()  # an interval's brackets are no link


def _width(text: str) -> int:
    """Columns of the terminal; the hat of n̂ takes none."""
    return sum(not unicodedata.combining(character) for character in text)


def _set(cell: str, width: int, left: bool) -> str:
    space = " " * (width - _width(cell))
    return cell + space if left else space + cell


def text(plain: str) -> str:
    """Escaped."""
    return _SPECIAL.sub(r"\\\1", plain)
