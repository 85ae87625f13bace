"""Ablation over b, the number of intervals, on the Open LLM benchmarks (tables/intervals_openllm.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common, openllm
from tables.benchmarks import ablated, published, stacked

CAPTION = (
    r"Influence of the number of intervals $b$ on the Open LLM benchmarks. Measured rows: "
    r"with 95\,\% intervals. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from DPRoPE's records of experiments.open_llm."""
    blocks = [*published("intervals_openllm"), *ablated(results, scale, "open_llm", openllm.scores, "intervals", 360)]
    return stacked("intervals_openllm", blocks, CAPTION, row_title=r"$b$")


if __name__ == "__main__":
    common.run("intervals_openllm", __doc__, "tiny", build)
