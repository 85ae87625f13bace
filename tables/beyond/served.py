"""Inference engines against transformers, position by position."""

from __future__ import annotations

from analysis.beyond import serving
from analysis.beyond.serving import EXACT, QUANTISED, Served
from analysis.results import Results
from analysis.settings import STATES
from tables.kit.table import Block, Cell, Table, number, probability, sentence_case

CAPTION = (
    "Mean loss (nats) of the same tokens beyond L, by an engine, by transformers 5, and by transformers 5 without "
    "extension. |Δ| is the difference between engine and transformers at a position. An engine is right if |Δ| is "
    f"at most {EXACT:g} on average or, for quantised weights, if the mean losses differ by at most {QUANTISED:g}. "
    "“Dropped” means that by the same measure the engine agrees with the model without extension, and more closely."
)
HEADER = ("Method", "Engine", "Weights", "Engine's", "transformers", "Without", "Mean |Δ|", "Largest |Δ|", "Verdict")


def build(results: Results) -> Table:
    """From the records of experiments.beyond.served."""
    rows, blocks = serving.served(results), []
    if not rows:
        raise results.lacks("record of served", "served")
    for trained, state in STATES:
        for length, scored in dict.fromkeys((row.length, row.scored) for row in rows if row.trained == trained):
            own = [row for row in rows if (row.trained, row.length, row.scored) == (trained, length, scored)]
            title = f"{results.model.title}, measured {state}, the last {scored} of {length} tokens"
            blocks.append(Block(title, HEADER, tuple(map(line, own))))
    return Table("served", CAPTION, tuple(blocks))


def line(row: Served) -> tuple[Cell, ...]:
    """A record's."""
    losses = [Cell(number(row.losses[name].mean, 4)) for name in ("engine", "transformers", "unextended")]
    apart = [Cell(probability(value) if value else "0") for value in (row.mean, row.largest)]
    name = sentence_case(row.setting.name)
    return Cell(name), Cell(row.engine), Cell(row.weights), *losses, *apart, Cell(row.verdict)
