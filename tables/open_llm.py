"""Table 2: the Open LLM benchmarks."""

from analysis import metrics
from analysis.results import Record, Results
from tables.kit.benchmark_table import INTERVALS, benchmark
from tables.kit.table import Table

CAPTION = (
    "Open LLM benchmarks (%): TruthfulQA (mc2, 0-shot), HellaSwag (0-shot), MMLU (5-shot), ARC-c "
    "(25-shot), fewer "
    f"where a title says so. Measured rows: on the sample of documents that the record names, "
    f"{INTERVALS}. A "
    "miniature is generated (tools/tiny/miniature) and cannot be compared with the benchmarks. "
    "Best in bold."
)


def build(results: Results) -> Table:
    """From the records of experiments.open_llm."""
    return benchmark(results, "open_llm", CAPTION, metrics.open_llm, "Table 2", title_suffix)


def title_suffix(record: Record) -> str:
    """How many examples a prompt has at most, where that is not the benchmarks' own number."""
    return f", at most {record.run['shots']} shots" if "shots" in record.run else ""
