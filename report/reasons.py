"""Where methods fail, and why: heads that look back, and what the temperature alone does, setting by setting."""

from __future__ import annotations

from html import escape
from pathlib import Path

from analysis import results
from analysis.metrics import previous_token
from analysis.results import Results
from analysis.rows import STATES, Row, Setting, compared, extended_length, in_comparison
from report.gallery import Gallery
from tables.kit import html
from tables.kit.model import NONE, Block, Cell, Table, score_cell

FIGURE = "previous_token"  # which shows every head by itself
CAPTION = (
    "Heads that look back, and passkeys. “k back” and “s·k back”: the attention (%) that these heads give to the token "
    "k places back and to the one s·k places back, on text within L; mean over heads. “Passkeys at L'”: those found of "
    "those asked, of all training seeds. “Attention × …” is the same choice of pairs with another "
    "temperature, which tells the effect of one from that of the other. In brackets: 95 % intervals."
)
_INTRODUCTION = (
    "Some heads give a third of their attention or more to the token k places back (k = 1…8). They tell neighbours "
    "apart by the fastest pairs. Interpolating a pair divides its angles by s, so that such a head may look s·k places "
    "back instead, and miss the token that it needs. The maps show every such head, the table their mean."
)
_HEADER = ("Method", "k back", "s·k back", "passkeys at L'")


def build(folder: Path) -> Table | None:
    """A block for each scale, state and factor that was measured; None where none was."""
    blocks = [block for measured in results.every(folder) for block in _blocks(measured)]
    return Table("reasons", CAPTION, tuple(blocks)) if blocks else None


def render(folder: Path, models: list[Gallery]) -> str:
    """A map of the heads of each scale and the table, as HTML; empty where nothing was measured."""
    made = build(folder)
    if not made:
        return ""
    figures = "".join(
        f"<h3>{escape(model.scale.title)}</h3>{figure}" for model in models if (figure := model.figure(FIGURE))
    )
    return f"<p>{escape(_INTRODUCTION)}</p>{figures}{_folded(made)}"


def _folded(made: Table) -> str:
    return (
        "<details><summary>The mean over heads, and the passkeys that each setting finds</summary>"
        f"<p>{escape(made.caption)}</p>{html.render(made, caption=False)}</details>"
    )


def _blocks(measured: Results) -> list[Block]:
    blocks = []
    for trained, state in STATES:
        heads, keys = (
            {row.setting: row for row in compared(measured, name, trained).rows if _shown(measured, row)}
            for name in ("previous_token", "passkey")
        )
        settings = [*heads, *(setting for setting in keys if setting not in heads)]
        for factor in sorted({setting.factor for setting in heads}):
            own = sorted((setting for setting in settings if setting.factor == factor), key=lambda s: s.order)
            length = extended_length(measured, factor)
            rows = tuple(_cells(setting, heads.get(setting), keys.get(setting), length) for setting in own)
            blocks.append(Block(f"{measured.scale.title}, {state}, s = {factor:g}", _HEADER, rows))
    return blocks


def _shown(measured: Results, row: Row) -> bool:
    """The comparison's settings, and those that differ from one in the temperature alone."""
    setting = row.setting
    options = tuple(entry for entry in setting.options if entry[0] != "attention_factor")
    same_pairs = Row(Setting(setting.method, options, setting.factor), row.runs)
    return setting.method is not None and in_comparison(measured.scale)(same_pairs)


def _cells(setting: Setting, heads: Row | None, keys: Row | None, length: int) -> tuple[Cell, ...]:
    shares = heads.scores(previous_token) if heads else {}
    return (Cell(setting.name), *(score_cell(shares.get(name)) for name in _HEADER[1:3]), _found(keys, length))


def _found(keys: Row | None, length: int) -> Cell:
    """Of all seeds together, at one length."""
    rows = [row for run in (keys.runs if keys else ()) for row in run["scores"]["by_length"] if row["length"] == length]
    if not rows:
        return Cell(NONE)
    return Cell(f"{round(sum(row['mean'] * row['n'] for row in rows))} of {sum(row['n'] for row in rows)}")
