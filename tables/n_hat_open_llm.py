"""Table 5: Open LLM by n̂, the number of interpolated dimensions."""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table

CAPTION = (
    "Influence of the number of interpolated dimensions n̂ on the Open LLM benchmarks. Measured rows have 95 % "
    "intervals, and of the fine-tuned ones only the seeds that every row has, so they can differ from the main "
    "table. The best is bold."
)


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.open_llm."""
    return ablation(results, "open_llm", "n_hat", metrics.open_llm, "Table 5", CAPTION)
