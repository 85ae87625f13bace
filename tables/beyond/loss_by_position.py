"""Loss by position, within L and beyond it."""

from analysis import disturbance
from analysis.beyond import books
from analysis.beyond import loss_by_position as losses
from analysis.beyond.loss_by_position import BEYOND, CHANGE, WITHIN
from analysis.comparison import Comparison
from analysis.results import Record, Results
from analysis.scores import Score, Scores, counted
from analysis.settings import BASELINE, lengths
from core import rope
from core.setting import tokens
from tables.benchmarks import OVER_TEXTS, precision, seeds, with_training
from tables.kit.table import Block, Table, score_block, titles

DISTURBANCE = "disturbance"
PLACES = {where: f"Δ {where}" for where in (WITHIN, BEYOND, CHANGE)}
CAPTION = (
    f"Mean loss (nats per token) by position, on the beginnings of texts. Δ is the difference to "
    f"{BASELINE}'s loss, "
    f"paired by text: untrained methods to untrained {BASELINE}, fine-tuned ones to fine-tuned. "
    f"{OVER_TEXTS} "
    f"Disturbance is the mean over pairs in 10⁻³ nat, in the released code's convention. The best "
    f"is bold."
)


def loss_by_position(results: Results) -> Table:
    """Loss within and beyond L, without training and fine-tuned.

    Loss by position on the beginnings of books, up to L': at each factor, a block for each state
    and set of texts.
    """
    results.require("loss_by_position")
    blocks = [_block(results, rows) for rows in books.sets(results, "loss_by_position")]
    return Table("loss_by_position", CAPTION, tuple(blocks))


def _block(results: Results, compared: Comparison) -> Block:
    baseline = compared.find(rope.BASELINE, {})
    rows = []
    for row in compared.rows:
        computed = disturbance.compute(results.plain, row.setting)
        scores: Scores = {DISTURBANCE: computed and Score(computed.average)}
        scores |= {where: losses.level(row, where) for where in (WITHIN, BEYOND)}
        for where, column in PLACES.items():
            scores[column] = None if baseline in (None, row) else losses.gap(row, baseline, where)
        rows.append((with_training(row.setting.name, row, compared.rows), scores))
    title = _title(results, compared)
    return score_block(title, rows, digits=3, best=min, unranked=DISTURBANCE)


def _title(results: Results, compared: Comparison) -> str:
    first = compared.first
    count = first.run["length"] * len(first.scores["blocks"])
    texts = f"{titles(losses.texts(first))} ({count:,} tokens)"
    how = f"{state(compared)}{precision(first)}"
    return f"{results.title}, {extension(results, first)}, {how}, {texts}"


def extension(results: Results, first: Record) -> str:
    """s, L and L'; of a model that nothing extends, L and how far it was read all the same."""
    if first.run["factor"] == 1:
        return f"{tokens(results.context_length)}, read to {first.run['length']:,}"
    return f"s = {first.run['factor']:g}, {lengths(results, first.run['factor'])}"


def state(compared: Comparison) -> str:
    """Whether rows are fine-tuned and, if so, how."""
    words = f"{compared.rows[0].state}{seeds(compared.rows)}"
    training = compared.first.training or {}
    read = {
        f"{each['steps']} steps on sequences of {each['length']:,} tokens": None
        for each in (row.first.training or {} for row in compared.rows)
        if {"steps", "length"} <= each.keys()
    }
    if read:
        words += f" ({' or '.join(read)})"
    if "per_book" in training:
        words += f", at most {counted(training['per_book'], 'sequence')} of each book"
    return words
