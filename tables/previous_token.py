"""Heads that look k tokens back: how much of their attention is there, and s·k back (tables/previous_token.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import INTERVALS, Scores, measured, stacked

CAPTION = (
    r"Beyond the paper: attention, in per cent, of the heads that in the base model give a third of it or more to the "
    r"token $k$ places back ($k=1\ldots 8$): what lies $k$ places back under each method, and what lies $s\,k$ back, on "
    rf"text within $L$; mean over heads, {INTERVALS}; samples are blocks of 128 queries."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.previous_token."""
    blocks = list(measured(results, scale, "previous_token", scores, heads))
    return stacked("previous_token", blocks, CAPTION, best=None)


def scores(record: dict) -> Scores:
    """The two shares."""
    return {"$k$ back": record["scores"]["own"], "$s k$ back": record["scores"]["scaled"]}


def heads(record: dict) -> str:
    """How many there are, for a block's title."""
    return f", {len(record['scores']['heads'])} heads"


if __name__ == "__main__":
    common.run("previous_token", __doc__, "tiny", build)
