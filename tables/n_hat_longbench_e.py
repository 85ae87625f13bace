"""Table 4: LongBench-E by n̂, the number of interpolated dimensions."""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table

CAPTION = (
    "Influence of the number of interpolated dimensions n̂ on LongBench-E. Measured rows have 95 % intervals, and "
    "of the fine-tuned ones only the seeds that every row has, so they can differ from the main table. The best is "
    "bold."
)


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.longbench_e."""
    return ablation(results, "longbench_e", "n_hat", metrics.longbench_e, "Table 4", CAPTION)
