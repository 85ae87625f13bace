"""Table 5: Open LLM by n̂, the number of interpolated dimensions."""

from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.open_llm."""
    return ablation(results, "open_llm", "n_hat", "Table 5")
