"""Where methods fail, and why: heads that look back, and what the temperature alone does, setting by setting."""

from __future__ import annotations

from pathlib import Path

from analysis import results
from analysis.metrics import previous_token
from analysis.results import Results
from analysis.rows import STATES, Row, Setting, compared, extended_length, in_comparison
from tables.kit.model import NONE, Block, Cell, Table, score_cell

CAPTION = (
    "Where methods fail, and why. Attention of the heads that, in the base model, look k tokens back: what they give "
    "to that place, and what to the place s·k back, on text within L (%). Passkeys found at L', with YaRN's "
    "temperature taken away and given to DPRoPE, too: what of a difference is the choice of pairs. In brackets: "
    "95 % intervals."
)
_HEADER = ("Method", "k back", "s·k back", "passkeys at L'")


def build(folder: Path) -> Table | None:
    """A block for each scale, state and factor that was measured; None where none was."""
    blocks = [block for measured in results.every(folder) for block in _blocks(measured)]
    return Table("reasons", CAPTION, tuple(blocks)) if blocks else None


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
