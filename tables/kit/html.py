"""A table as HTML."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import quote

from tables.kit.table import Block, Cell, Table

_INDEX = re.compile(r"\b(P)_(L(?:&#x27;)?)")  # P_L, P_L'


def anchor(*names: str) -> str:
    """An id, the same as the target of a link to it, of names that may hold any character."""
    return "-".join(quote(name, safe="") for name in names)


def render(table: Table, name: str = "", caption: bool = True) -> str:
    """A <figure>: the caption, the <table> in a box that scrolls by itself, and the notes.

    Args:
        name: the id; by default the table's name.
    """
    heading = f"<figcaption>{text(table.heading)}</figcaption>" if caption else ""
    body = "".join(_block(block, table.width) for block in table.blocks)
    kind = " class=words" if table.words else ""
    notes = "".join(f"<p class=note>{text(note)}</p>" for note in table.notes)
    return (
        f'<figure class=table id="{escape(name or anchor(table.name))}">{heading}'
        f"<div class=scroll><table{kind}>{body}</table></div>{notes}</figure>"
    )


def _block(block: Block, columns: int) -> str:
    rows = []
    if block.title:
        title = f"<span>{text(block.title)}</span>"
        rows.append(f"<tr class=title><th colspan={columns} scope=rowgroup>{title}</th></tr>")
    if block.groups:
        spans = "".join(f"<th colspan={span} scope=colgroup>{text(title)}</th>" for title, span in block.groups)
        rows.append(f"<tr class=groups><td></td>{spans}</tr>")
    if block.rows:
        # A <td> where there is nothing to head: an empty heading says nothing to those who listen.
        heads = (f"<th scope=col>{text(title)}</th>" if title else "<td></td>" for title in block.header)
        rows.append(f"<tr class=header>{''.join(heads)}</tr>")
        rows += [_row(row) for row in block.rows]
    return f"<tbody>{''.join(rows)}</tbody>"


def _row(row: tuple[Cell, ...]) -> str:
    first, *rest = map(_cell, row)
    return f"<tr><th scope=row>{first}</th>{''.join(f'<td>{cell}</td>' for cell in rest)}</tr>"


def _cell(cell: Cell) -> str:
    value = f"<b>{text(cell.text)}</b>" if cell.bold else text(cell.text)
    return f"{value} <small>{text(cell.small)}</small>" if cell.small else value


def text(plain: str) -> str:
    """Escaped, the paper's indices as such."""
    return _INDEX.sub(r"\1<sub>\2</sub>", escape(plain))
