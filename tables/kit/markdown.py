"""A table as Markdown: a table for each block, its title above it."""

from __future__ import annotations

import re

from tables.kit.table import Block, Cell, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|])")


def render(table: Table, caption: bool = True) -> str:
    """Caption, blocks and notes."""
    parts = [text(table.heading)] if caption else []
    for block in table.aligned:
        parts += [f"*{text(block.title)}*"] if block.title else []
        parts += [_rows(block, table.words)] if block.rows else []
    return "\n\n".join([*parts, *map(text, table.notes)])


def _rows(block: Block, words: bool) -> str:
    lines = [
        list(map(text, block.header)),
        ["---", *["---" if words else "---:"] * (len(block.header) - 1)],
        *(list(map(_cell, row)) for row in block.rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Cell) -> str:
    value = f"**{text(cell.text)}**" if cell.bold and cell.text else text(cell.text)
    # Brackets of an interval are no link: nothing stands behind them.
    return f"{value} {cell.small.replace('|', chr(92) + '|')}" if cell.small else value


def text(plain: str) -> str:
    """Escaped."""
    return _SPECIAL.sub(r"\\\1", plain)
