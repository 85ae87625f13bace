"""The numbers of Figure 4: passkeys found by length."""

from __future__ import annotations

from analysis import metrics
from analysis.comparison import compared, in_comparison
from analysis.metrics import ALL, Passkeys, passkeys_by_length
from analysis.results import Results
from analysis.settings import STATES
from tables.kit.benchmark_table import titled
from tables.kit.table import NO_RECORD, Block, Cell, Table, interval, noted, sentence_case

CAPTION = (
    "Passkeys found, out of those asked for, by the length of the text in tokens. Counts add up all training seeds, "
    "which get the same prompts. So the 95 % interval of the share in brackets (per cent) counts each prompt once "
    "(Wilson's) and adds the spread of the seeds (Student's)."
)


def build(results: Results) -> Table:
    """From the records of experiments.passkey, the main comparison's settings; those of the same pairs once."""
    results.require("passkey")
    blocks, left_out = [], []
    for trained, state in STATES:
        rows = compared(results, "passkey", trained, twins=False).only(in_comparison(results.model))
        left_out += rows.left_out
        if rows:
            found = [(name, passkeys_by_length(row)) for name, row in titled(rows, metrics.passkey)]
            blocks.append(_block(f"{results.model.title}, measured {state}", found))
    return noted(Table("passkey", CAPTION, tuple(blocks), "Figure 4"), left_out)


def _block(title: str, rows: list[tuple[str, dict[str, Passkeys]]]) -> Block:
    every = dict.fromkeys(length for _, found in rows for length in found if length != ALL)
    lengths = [*every, ALL]
    made = tuple((Cell(sentence_case(name)), *(_cell(found.get(each)) for each in lengths)) for name, found in rows)
    return Block(title, ("Method", *lengths), made)


def _cell(keys: Passkeys | None) -> Cell:
    return Cell(f"{keys.found}/{keys.asked}", interval(keys.share, 0)) if keys else Cell(NO_RECORD)
