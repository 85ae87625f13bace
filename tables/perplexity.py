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
    blocks = list(published("perplexity"))
    for of in (_is_excerpt, _is_whole):
        blocks += measured(results, scale, "perplexity", scores, extent, of)
    return stacked("perplexity", blocks, CAPTION, digits=2, best=min)


def extent(record: dict) -> str:
    """Which part of the texts was scored, and the stride or strides, where not the paper's."""
    part = f", first {record['tokens']:,} tokens" if _is_excerpt(record) else ""
    stride = record["stride"]
    strides = ", ".join(map(str, stride if isinstance(stride, list) else [stride]))
    return part if stride == 256 else f"{part}, $S={strides}$"


def _is_excerpt(record: dict) -> bool:
    return record["tokens"] is not None


def _is_whole(record: dict) -> bool:
    return record["tokens"] is None


def scores(record: dict) -> Scores:
    """The token-weighted average at every evaluation length."""
    return {tokens(row["length"]): row["token"] for row in record["scores"]}


if __name__ == "__main__":
    common.run("perplexity", __doc__, "tiny", build)
