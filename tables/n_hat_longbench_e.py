"""Table 4: LongBench-E by n̂, the number of interpolated dimensions."""

from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.longbench_e."""
    return ablation(results, "longbench_e", "n_hat", "Table 4")
