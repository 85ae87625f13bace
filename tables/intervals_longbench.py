"""Ablation over b, the number of intervals, on LongBench-E (tables/intervals_longbench.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common, longbench
from tables.benchmarks import ablated, published, stacked

CAPTION = (
    r"Influence of the number of intervals $b$ on LongBench-E. Measured rows: "
    r"with 95\,\% intervals. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from DPRoPE's records of experiments.longbench_e."""
    blocks = [
        *published("intervals_longbench"),
        *ablated(results, scale, "longbench_e", longbench.scores, "intervals", 360),
    ]
    return stacked("intervals_longbench", blocks, CAPTION, row_title=r"$b$")


if __name__ == "__main__":
    common.run("intervals_longbench", __doc__, "tiny", build)
