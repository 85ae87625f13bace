"""Loss within and beyond L, without training and fine-tuned.

Loss by position on the beginnings of books, up to L'.
"""

from __future__ import annotations

from analysis import disturbance
from analysis.beyond import long_perplexity, loss_by_position
from analysis.comparison import Comparison
from analysis.results import Results
from analysis.scores import Score, Scores
from analysis.settings import extended_length, tokens
from core import rope
from tables.beyond.long_perplexity import KEY_TOKENS
from tables.kit.benchmark_table import OVER_TEXTS, QUICK, seeds, sketched
from tables.kit.table import Block, Table, noted, score_block, titles

BASELINE = rope.METHODS[rope.BASELINE].title
DISTURBANCE, DIFFERENCE, KEY = "disturbance", f"Δ to {BASELINE} beyond L", "key tokens beyond L"
CAPTION = (
    f"Mean loss (nats per token) by position, on the beginnings of texts. Δ is the difference to {BASELINE}'s loss, "
    f"paired by text: untrained methods to untrained {BASELINE}, fine-tuned ones to fine-tuned. {OVER_TEXTS} Disturbance "
    f"is the mean over pairs in 10⁻³ nat, in the released code's convention. {KEY_TOKENS} The best is bold."
)


def build(results: Results) -> Table:
    """From the records of loss by position and of disturbances: two blocks for each factor."""
    results.require("loss_by_position")
    blocks, left_out, shown = [], [], set()
    for factor in loss_by_position.measured_factors(results):
        for rows in loss_by_position.parts(results, factor):
            left_out += rows.left_out
            shown |= {run["file"] for row in rows.rows for run in row.runs}
            blocks.append(_block(results, rows, factor))
    return noted(Table("loss_by_position", CAPTION, tuple(blocks)), [one for one in left_out if one.file not in shown])


def _block(results: Results, found: Comparison, factor: float) -> Block:
    rival = found.find(rope.BASELINE, {})
    rows, key = [], {row.setting: long_perplexity.key_loss(results, row) for row in found.rows}
    for row in found.rows:
        average = disturbance.averaged(results, row.setting)
        scores: Scores = {DISTURBANCE: None if average is None else Score(1e3 * average)}
        scores |= row.scores(loss_by_position.ranges)
        scores[DIFFERENCE] = None if rival in (None, row) else loss_by_position.gap(row, rival)
        scores |= {KEY: key[row.setting]} if any(key.values()) else {}
        rows.append((row.setting.name, scores))
    metrics = dict.fromkeys(metric for _, scores in rows for metric in scores)
    quick = sketched(results, found.rows)
    best = {metric: None if quick or metric in (DISTURBANCE, DIFFERENCE) else min for metric in metrics}
    title = _title(results, found, factor) + QUICK * quick
    return score_block(title, rows, digits=dict.fromkeys(best, 3), best=best, signed=[DIFFERENCE])


def _title(results: Results, found: Comparison, factor: float) -> str:
    first, model = found.first, results.model
    state = "without training"
    if found.rows[0].trained:
        training = first["training"]
        state = f"fine-tuned{seeds(found.rows)}"
        if {"steps", "length"} <= training.keys():
            lengths = dict.fromkeys(f"{row.first['training']['length']:,}" for row in found.rows)
            state += f" ({training['steps']} steps on sequences of {' or '.join(lengths)} tokens)"
    read = f"{titles(loss_by_position.texts(first))} ({first['length'] * len(first['blocks']):,} tokens)"
    extended = tokens(extended_length(results, factor))
    return f"{model.title}, s = {factor:g}, {tokens(model.context_length)} to {extended}, {state}, {read}"
