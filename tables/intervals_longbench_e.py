"""Table 6: LongBench-E by b, the number of intervals."""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table

CAPTION = (
    "Influence of the number of intervals b on LongBench-E. Measured rows have 95 % intervals, and of the "
    "fine-tuned ones only the seeds that every row has, so they can differ from the main table. DPRoPE is that of t "
    "= 0. The best is bold."
)


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.longbench_e."""
    return ablation(results, "longbench_e", "intervals", metrics.longbench_e, "Table 6", CAPTION)
