"""Ablation over n̂, the number of interpolated dimensions, on the Open LLM benchmarks (tables/n_hat_openllm.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common, openllm
from tables.benchmarks import ablated, published, stacked

CAPTION = (
    r"Influence of the number of interpolated dimensions $\hat n$ on the Open LLM benchmarks. Measured rows: "
    r"with 95\,\% intervals. Best in bold."
)


def build(results: Path, scale: str) -> str:
    """LaTeX from DPRoPE's records of experiments.open_llm."""
    blocks = [*published("n_hat_openllm"), *ablated(results, scale, "open_llm", openllm.scores, "n_hat")]
    return stacked("n_hat_openllm", blocks, CAPTION, row_title=r"$\hat n$")


if __name__ == "__main__":
    common.run("n_hat_openllm", __doc__, "tiny", build)
