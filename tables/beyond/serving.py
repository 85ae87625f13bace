"""Which engines compute an exported model, and how to serve L'."""

from __future__ import annotations

from analysis.beyond import serving
from analysis.beyond.serving import Engine
from analysis.results import Results
from tables.kit.table import NONE, Block, Cell, Table

CAPTION = (
    "What engines make of an exported model: of its inverse frequencies, and of the attention factor of a method "
    "that has one. “Right” and “dropped” were measured where there is a record; elsewhere they follow from the "
    "engine's source."
)
HEADER = ("Engine", "What it computes", "To serve L'", "Evidence, and what to do")


def build(results: Results) -> Table:
    """From the records of experiments.beyond.served and what was read in the engines' sources."""
    rows = serving.served(results)
    if not rows:
        raise results.lacks("record of served", "served")
    lines = tuple(map(line, serving.matrix(rows)))
    return Table("serving", CAPTION, (Block(f"Records of {results.model.title}", HEADER, lines),), words=True)


def line(engine: Engine) -> tuple[Cell, ...]:
    """An engine's."""
    computes = f"frequencies {engine.frequencies}; attention factor {engine.attention_factor}"
    if engine.frequencies == engine.attention_factor:
        computes = engine.frequencies
    evidence = ", ".join(part for part in (engine.version, engine.evidence) if part)
    why = ". ".join(part.rstrip(".") for part in (evidence, engine.remedy) if part)
    return Cell(engine.engine), Cell(computes), Cell(engine.serve or NONE), Cell(why or NONE)
