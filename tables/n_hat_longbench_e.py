"""Table 4: LongBench-E by n̂, the number of interpolated dimensions."""

from __future__ import annotations

from analysis import metrics
from analysis.results import Results
from tables.kit.blocks import ablation
from tables.kit.model import Table

CAPTION = (
    "Influence of the number of interpolated dimensions n̂ on LongBench-E. Measured rows: with 95 % intervals. "
    "Best in bold."
)


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.longbench_e."""
    return ablation(results, "longbench_e", "n_hat", metrics.longbench_e, "Table 4", CAPTION)
