"""Table 7: Open LLM benchmarks by b, the number of intervals."""

from analysis.results import Results
from tables.kit.benchmark_table import ablation
from tables.kit.table import Table


def build(results: Results) -> Table:
    """From DPRoPE's records of experiments.open_llm."""
    return ablation(results, "open_llm", "intervals", "Table 7")
