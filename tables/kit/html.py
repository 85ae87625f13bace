"""A table as HTML."""

from __future__ import annotations

from html import escape

from tables.kit.model import Block, Cell, Table


def render(table: Table) -> str:
    """One <table> with its caption; notes below it."""
    body = "".join(_block(block, table.width) for block in table.blocks)
    kind = " class=words" if table.words else ""
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in table.notes)
    return f'<table id="{escape(table.name)}"{kind}><caption>{escape(table.heading)}</caption>{body}</table>{notes}'


def _block(block: Block, columns: int) -> str:
    rows = []
    if block.title:
        rows.append(f"<tr class=rule><th colspan={columns} scope=rowgroup>{escape(block.title)}</th></tr>")
    if block.groups:
        spans = "".join(f"<th colspan={span} scope=colgroup>{escape(title)}</th>" for title, span in block.groups)
        rows.append(f"<tr><td></td>{spans}</tr>")
    if block.rows:
        rows.append("<tr>" + "".join(f"<th scope=col>{escape(title)}</th>" for title in block.header) + "</tr>")
        rows += ["<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in block.rows]
    return f"<tbody>{''.join(rows)}</tbody>"


def _cell(cell: Cell) -> str:
    value = f"<b>{escape(cell.text)}</b>" if cell.bold else escape(cell.text)
    return f"{value} <small>{escape(cell.small)}</small>" if cell.small else value
