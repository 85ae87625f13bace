"""LongBench-E: the mean over its tasks in each bucket of lengths (tables/longbench.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import Scores, measured, published, stacked

CAPTION = (
    r"LongBench-E, mean score over its tasks by length in words. Measured rows: with bootstrap 95\,\% intervals over "
    r"samples. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.longbench_e."""
    return stacked(
        "longbench", [*published("longbench"), *measured(results, scale, "longbench_e", scores, extent)], CAPTION
    )


def extent(record: dict) -> str:
    """The tasks, where they are not all 13."""
    tasks = list(record["scores"]["tasks"])
    return "" if len(tasks) == 13 else f", {', '.join(tasks)} only".replace("_", r"\_")


def scores(record: dict) -> Scores:
    """The buckets, and the averages that all of their buckets were measured for."""
    return record["scores"]["buckets"] | record["scores"]["averages"]


if __name__ == "__main__":
    common.run("longbench", __doc__, "smollm2", build)
