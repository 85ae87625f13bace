"""Table 7: Open LLM benchmarks by b, the number of intervals."""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table

CAPTION = (
    "Influence of the number of intervals b on the Open LLM benchmarks. Measured rows have 95 % intervals, and of "
    "the fine-tuned ones only the seeds that every row has, so they can differ from the main table. DPRoPE is that "
    "of t = 0. The best is bold."
)


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.open_llm."""
    return ablation(results, "open_llm", "intervals", metrics.open_llm, "Table 7", CAPTION)
