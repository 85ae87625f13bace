"""A table as plain text for the terminal: aligned columns, and an asterisk for bold print."""

from __future__ import annotations

import textwrap
import unicodedata

from tables.kit.table import Block, Cell, Table

_WIDTH = 100  # characters of a line of prose
_WORDS = 40  # characters of a column of words, from which it is broken into lines


def render(table: Table) -> str:
    """Caption, blocks and notes."""
    cells = [_cells(block, table.words) for block in table.aligned]
    widths: dict[tuple[str, ...], list[int]] = {}  # blocks with the same header have the same columns
    for block, lines in zip(table.aligned, cells):
        own = [max(map(_width, column)) for column in zip(*lines)]
        widths[block.header] = list(map(max, zip(own, widths.get(block.header, own))))
    blocks = []
    for block, lines in zip(table.aligned, cells):
        rows = [_aligned(line, widths[block.header], table.words) for line in lines]
        blocks.append("\n".join([_prose(block.title), *rows] if block.title else rows))
    best = any(cell.bold for block in table.blocks for row in block.rows for cell in row)
    legend = ["* bold in print"] if best else []
    return "\n\n".join([_prose(table.heading), *blocks, *legend, *map(_prose, table.notes)]) + "\n"


def _cells(block: Block, words: bool) -> list[list[str]]:
    """The texts of each line, the header first."""
    lines = [list(block.header), *(list(map(_text, row)) for row in block.rows)] if block.rows else []
    return [line for row in lines for line in _broken(row)] if words else lines


def _aligned(line: list[str], widths: list[int], words: bool) -> str:
    cells = (_set(cell, width, words or not place) for place, (cell, width) in enumerate(zip(line, widths)))
    return "  ".join(cells).rstrip()


def _text(cell: Cell) -> str:
    return " ".join(part for part in (cell.text + "*" * cell.bold, cell.small) if part)


def _broken(row: list[str]) -> list[list[str]]:
    """A row of words as lines, each cell at most as wide as a column."""
    cells = [textwrap.wrap(cell, _WORDS) or [""] for cell in row]
    height = max(map(len, cells))
    return [list(line) for line in zip(*(cell + [""] * (height - len(cell)) for cell in cells))]


def _width(text: str) -> int:
    """Columns of the terminal; the hat of n̂ takes none."""
    return sum(not unicodedata.combining(character) for character in text)


def _set(cell: str, width: int, left: bool) -> str:
    space = " " * (width - _width(cell))
    return cell + space if left else space + cell


def _prose(text: str) -> str:
    return textwrap.fill(text, _WIDTH)
