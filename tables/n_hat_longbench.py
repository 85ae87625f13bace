"""Ablation over n̂, the number of interpolated dimensions, on LongBench-E (tables/n_hat_longbench.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common, longbench
from tables.benchmarks import ablated, published, stacked

CAPTION = (
    r"Influence of the number of interpolated dimensions $\hat n$ on LongBench-E. Measured rows: "
    r"with 95\,\% intervals. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from DPRoPE's records of experiments.longbench_e."""
    blocks = [*published("n_hat_longbench"), *ablated(results, scale, "longbench_e", longbench.scores, "n_hat")]
    return stacked("n_hat_longbench", blocks, CAPTION, row_title=r"$\hat n$")


if __name__ == "__main__":
    common.run("n_hat_longbench", __doc__, "tiny", build)
