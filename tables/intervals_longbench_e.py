"""Table 6: LongBench-E by b, the number of intervals."""

from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.longbench_e."""
    return ablation(results, "longbench_e", "intervals", "Table 6")
