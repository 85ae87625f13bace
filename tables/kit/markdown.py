"""A table as Markdown whose columns are aligned, so that it reads on a terminal, too."""

import re
import textwrap
import unicodedata
from collections.abc import Callable

from tables.kit.table import Block, Cell, Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|])")


def render(table: Table, caption: bool = True, escape: bool = True) -> str:
    """Caption and blocks.

    Args:
        escape: whether marks of Markdown are escaped; a terminal shows them as they are.
    """
    paragraph = text if escape else textwrap.fill
    paragraphs = [paragraph(table.heading)] if caption else []
    for block in table.blocks:
        paragraphs += [f"*{paragraph(block.title)}*"] if block.title else []
        paragraphs += [rows(block, table.words, text if escape else str)] if block.rows else []
    return "\n\n".join(paragraphs)


def rows(block: Block, words: bool, mark: Callable[[str], str]) -> str:
    """A line for the header, a rule, and a line for each row; numbers stand at the right of their
    column."""
    lines = [
        [mark(title) for title in block.header],
        *([_cell(cell, mark) for cell in row] for row in block.rows),
    ]
    widths = [max(2, *map(_width, column)) for column in zip(*lines)]
    at_left = [words or index == 0 for index in range(len(widths))]
    rule = [
        "-" * width if left else "-" * (width - 1) + ":" for width, left in zip(widths, at_left)
    ]
    lines.insert(1, rule)
    return "\n".join(f"| {' | '.join(map(_filled, line, widths, at_left))} |" for line in lines)


def _cell(cell: Cell, mark: Callable[[str], str]) -> str:
    value = f"**{mark(cell.text)}**" if cell.bold else mark(cell.text)
    small = cell.small.replace("|", "\\|")  # an interval's brackets are no link
    return f"{value} {small}".strip()


def _width(text: str) -> int:
    """Columns of the terminal; the hat of n̂ takes none."""
    return sum(not unicodedata.combining(character) for character in text)


def _filled(cell: str, width: int, left: bool) -> str:
    space = " " * (width - _width(cell))
    return cell + space if left else space + cell


def text(plain: str) -> str:
    """Escaped."""
    return _SPECIAL.sub(r"\\\1", plain)


def anchor(heading: str) -> str:
    """What a link to a heading ends in, as GitHub makes it: small letters, marks and digits, spaces
    as hyphens."""
    signs = (
        sign for sign in heading.lower() if sign in " -_" or unicodedata.category(sign)[0] in "LMN"
    )
    return "".join(signs).replace(" ", "-")
