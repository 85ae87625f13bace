"""Sliding-window perplexity at each evaluation length (tables/perplexity.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import INTERVALS, Scores, measured, published, stacked, tokens

CAPTION = (
    r"Sliding-window perplexity by evaluation length in tokens (stride $S=256$ unless stated), on PG19 in the published "
    r"rows and on the public-domain books named in the records in the measured ones. Measured: token-weighted, "
    rf"{INTERVALS}; samples are windows. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.perplexity."""
    blocks = [*published("perplexity"), *measured(results, scale, "perplexity", scores, extent)]
    return stacked("perplexity", blocks, CAPTION, digits=2, best=min)


def extent(record: dict) -> str:
    """The stride or strides, where not the paper's."""
    stride = record["stride"]
    return "" if stride == 256 else f", $S={', '.join(map(str, stride if isinstance(stride, list) else [stride]))}$"


def scores(record: dict) -> Scores:
    """The token-weighted average at every evaluation length."""
    return {tokens(row["length"]): row["token"] for row in record["scores"]}


if __name__ == "__main__":
    common.run("perplexity", __doc__, "tiny", build)
