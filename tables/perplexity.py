"""Sliding-window perplexity, S = 256, at each evaluation length (tables/perplexity.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import INTERVALS, Scores, measured, published, stacked, tokens

CAPTION = (
    r"Sliding-window perplexity by evaluation length in tokens, on PG19 in the published rows and on the public-domain "
    r"books named in the records in the measured ones. Measured: token-weighted, "
    rf"{INTERVALS}; samples are windows. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.perplexity."""
    blocks = [*published("perplexity"), *measured(results, scale, "perplexity", scores)]
    return stacked("perplexity", blocks, CAPTION, digits=2, best=min)


def scores(record: dict) -> Scores:
    """The token-weighted average at every evaluation length."""
    return {tokens(row["length"]): row["token"] for row in record["scores"]}


if __name__ == "__main__":
    common.run("perplexity", __doc__, "tiny", build)
