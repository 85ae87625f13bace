"""RULER, each method paired with YaRN and with itself untrained.

What each method answers better and what worse than the rival, and than itself untrained.
"""

from __future__ import annotations

from analysis.beyond import pairs
from analysis.beyond.pairs import Paired
from analysis.comparison import Comparison, compared, factors
from analysis.results import Results
from analysis.settings import STATES
from core import rope
from tables.kit.table import NONE, Block, Cell, Table, interval, noted, number, probability, sentence_case

RIVAL = rope.METHODS[rope.RIVAL].title
CAPTION = (
    f"RULER's score minus {RIVAL}'s and, for a fine-tuned model, minus its own before training (points), over all "
    "tasks and lengths. Prompts and seeds are averaged first. Brackets hold bootstrap 95 % intervals. “Better : "
    "worse” counts the tasks and lengths that score more and less; p is of a two-sided sign test, without "
    "correction for the number of comparisons."
)
_PAIR = ("Δ", "better : worse", "p")


def build(results: Results) -> Table:
    """From the records of experiments.ruler."""
    results.require("ruler")
    blocks, left_out = [], []
    for factor in factors(results, "ruler"):
        both = [_rows(results, trained, factor) for trained, _ in STATES]
        for (trained, state), rows in zip(STATES, both):
            made = _block(results, rows, both[0] if trained else None, f"{state}, s = {factor:g}")
            if made:
                left_out += rows.left_out
                blocks.append(made)
    if not blocks:
        raise results.lacks("two settings of RULER to pair", "ruler", "--method NAME")
    return noted(Table("ruler_paired", CAPTION, tuple(blocks)), left_out)


def _rows(results: Results, trained: bool, factor: float) -> Comparison:
    return compared(results, "ruler", trained, lambda run: run["method"] is not None, twins=False, factor=factor)


def _block(results: Results, rows: Comparison, untrained: Comparison | None, state: str) -> Block | None:
    rival, made = rows.find(rope.RIVAL, {}), []
    for row in rows.rows:
        found = [None if rival in (None, row) else pairs.ruler(row, rival)]
        if untrained is not None:
            same = pairs.untrained_of(row, untrained)
            found.append(pairs.ruler(row, same) if same else None)
        made.append((row.setting.name, found))
    if not any(pair for _, found in made for pair in found):
        return None
    groups = ((f"against {RIVAL}", 3), ("against the same untrained", 3))[: len(made[0][1])]
    cells = tuple(
        (Cell(sentence_case(name)), *(cell for pair in found for cell in _cells(pair))) for name, found in made
    )
    count = len(next(iter(rows.first["scores"]["tasks"].values()))) * len(rows.first["scores"]["tasks"])
    title = f"{results.model.title}, measured {state}, {count} tasks and lengths"
    return Block(title, ("Method", *_PAIR * len(groups)), cells, groups)


def _cells(pair: Paired | None) -> list[Cell]:
    if pair is None:
        return [Cell(NONE)] * len(_PAIR)
    difference, test = pair.difference, pair.test
    return [
        Cell(number(difference.mean, 1, sign=True), interval(difference, 1)),
        Cell(f"{test.better} : {test.worse}"),
        Cell(probability(test.p)),
    ]
