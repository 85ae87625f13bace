"""LongBench-E: the mean over its tasks in each bucket of lengths (tables/longbench.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import INTERVALS, Scores, measured, published, stacked

CAPTION = (
    r"LongBench-E, mean score over its tasks by length in words. Measured rows: "
    rf"{INTERVALS}. A miniature is generated (eval/miniature) and cannot be compared with the benchmark. Best in bold."
)
# Generated samples are divided at L and 2L tokens.
MINIATURE = {"0-4k": "0-$L$", "4-8k": "$L$-2$L$", "8k+": "2$L$+", "Avg.": "Avg.", "Avg.>4k": "Avg.>$L$"}


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
    found = record["scores"]["buckets"] | record["scores"]["averages"]
    return {MINIATURE[name]: score for name, score in found.items()} if "benchmark" in record else found


if __name__ == "__main__":
    common.run("longbench", __doc__, "tiny", build)
