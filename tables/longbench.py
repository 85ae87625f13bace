"""LongBench-E: the mean over its tasks in each bucket of lengths (tables/longbench.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import Scores, measured, published, stacked

CAPTION = (
    r"LongBench-E, mean score over its tasks by length in words. Measured rows: with bootstrap 95\,\% intervals over "
    r"samples; a bucket holds the tasks that the record names. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.longbench_e."""
    return stacked("longbench", [*published("longbench"), *measured(results, scale, "longbench_e", scores)], CAPTION)


def scores(record: dict) -> Scores:
    """The buckets, and the averages that all of their buckets were measured for."""
    return record["scores"]["buckets"] | record["scores"]["averages"]


if __name__ == "__main__":
    common.run("longbench", __doc__, "smollm2", build)
