"""Keys in books, within L and beyond it, beside the losses of the same settings."""

from analysis.beyond import books, loss_by_position
from analysis.beyond import needles as keys
from analysis.beyond.books import BEYOND, WITHIN
from analysis.comparison import Comparison, Row
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import BASELINE
from core import rope
from tables.benchmarks import OVER_TEXTS, with_training
from tables.beyond.loss_by_position import extension, state
from tables.kit.table import NONE, Block, Cell, Table, score_cell, sentence_case, titles

SIDES = WITHIN, BEYOND
COLUMNS = (
    "Method",
    *(f"{what} {where}" for what in ("nats", "Δ", "found", "loss, Δ") for where in SIDES),
)
CAPTION = (
    "Keys of five digits hidden in the beginnings of books, L' tokens long, each asked for by its "
    "own sentence after one reading. Nats are −log of the probability of the right digits, the "
    "mean over keys: less is better, and a blind guess costs 11.4. A key lies beyond L if it "
    "begins more than L tokens before the question. Found are those whose digits are each the "
    f"likeliest, in all seeds together. Δ is the difference to {BASELINE}, paired by book, "
    f"untrained methods to untrained {BASELINE} and fine-tuned ones to fine-tuned. “Last” reads "
    "the last L tokens alone, and can only guess what lies further back. Losses, in nats a token, "
    f"are those of the table of losses by position, whose books may be others. {OVER_TEXTS}"
)


def needles(results: Results) -> Table:
    """Keys hidden in books, within and beyond L, beside losses.

    At each factor a block for each state and set of books.
    """
    results.require("needles")
    blocks = [_block(results, compared) for compared in books.sets(results, "needles")]
    return Table("needles", CAPTION, tuple(blocks))


def _block(results: Results, compared: Comparison) -> Block:
    baseline = compared.find(rope.BASELINE, {})
    several = len(compared.rows) > 1
    there = [where for where in SIDES if several and where in keys.sides(compared.first)]
    least = {where: min(keys.level(row, where).mean for row in compared.rows) for where in there}
    lines = []
    for row in compared.rows:
        has_gap = baseline not in (None, row)
        nats = [score_cell(keys.level(row, where), 2, best=least.get(where)) for where in SIDES]
        gaps = [keys.gap(row, baseline, where) if has_gap else None for where in SIDES]
        found = [_found(row, where) for where in SIDES]
        losses = [loss_beside(results, row, baseline, where) for where in SIDES]
        name = with_training(row.setting.name, row, compared.rows)
        lines.append(
            (
                Cell(sentence_case(name)),
                *nats,
                *(score_cell(gap, 2, sign=True) for gap in gaps),
                *map(Cell, found),
                *(score_cell(loss, 3, sign=True) for loss in losses),
            )
        )
    return Block(_title(results, compared), COLUMNS, tuple(lines))


def _found(row: Row, where: str) -> str:
    """How many keys of how many, of all seeds; a dash where there are none."""
    found, asked = keys.found(row, where)
    return f"{found} of {asked}" if asked else NONE


def loss_beside(results: Results, row: Row, baseline: Row | None, where: str) -> Score | None:
    """The loss of the same setting in the same state, and of the same fine-tunes, minus the
    baseline's, on its own books; None where it was not measured on enough of them.

    Args:
        baseline: the baseline's row of keys, if there is one.
    """
    if row.setting.last:
        return None
    for rows in loss_by_position.samples(results, row.setting.factor, row.trained):
        same = rows.find(row.setting.method, dict(row.setting.options))
        other = rows.find(rope.BASELINE, {})
        if not (same and other) or same is other:
            continue
        of_keys = row.fine_tune, (baseline or other).fine_tune
        if (same.fine_tune, other.fine_tune) == of_keys:
            return loss_by_position.gap(same, other, where)
    return None


def _title(results: Results, compared: Comparison) -> str:
    first = compared.first
    of = f"{results.title}, {extension(results, first)}, {state(compared)}"
    texts = titles(keys.texts(first))
    return f"{of}, {first.run['dtype']}, {first.run['keys']} keys in each of {texts}"
