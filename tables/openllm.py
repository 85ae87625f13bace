"""The Open LLM benchmarks (tables/openllm.tex)."""

from __future__ import annotations

from pathlib import Path

from tables import common
from tables.benchmarks import INTERVALS, Scores, measured, published, stacked

CAPTION = (
    r"Open LLM benchmarks (\%): TruthfulQA (mc2, 0-shot), HellaSwag (0-shot), MMLU (5-shot), ARC-c (25-shot). Measured "
    rf"rows: on the sample of documents that the record names, {INTERVALS}. "
    r"A miniature is generated (eval/miniature) and cannot be compared with the "
    r"benchmarks. Best in bold."
)


TITLES = {
    "truthfulqa": "TruthfulQA",
    "hellaswag": "HellaSwag",
    "mmlu": "MMLU",
    "arc_challenge": "ARC-c",
    "average": "Avg.",
}


def build(results: Path, scale: str) -> str:
    """LaTeX from the records of experiments.open_llm."""
    return stacked("openllm", [*published("openllm"), *measured(results, scale, "open_llm", scores, extent)], CAPTION)


def extent(record: dict) -> str:
    """How many examples a prompt has at most, where that is not the benchmarks' own number."""
    return f", at most {record['shots']} shots" if "shots" in record else ""


def scores(record: dict) -> Scores:
    """Each benchmark, and their mean where all four were measured."""
    return {TITLES[name]: score for name, score in record["scores"].items()}


if __name__ == "__main__":
    common.run("openllm", __doc__, "tiny", build)
