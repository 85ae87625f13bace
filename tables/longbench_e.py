"""Table 1: LongBench-E, mean over its tasks by length."""

from analysis import metrics
from analysis.results import Record, Results
from tables.kit.benchmark_table import INTERVALS, benchmark
from tables.kit.table import Table

CAPTION = (
    f"LongBench-E, mean score over its tasks by length in words. Measured rows: {INTERVALS}. A "
    f"miniature is "
    "generated (tools/tiny/miniature) and cannot be compared with the benchmark. Best in bold."
)


def build(results: Results) -> Table:
    """From the records of experiments.longbench_e."""
    return benchmark(results, "longbench_e", CAPTION, metrics.longbench_e, "Table 1", title_suffix)


def title_suffix(record: Record) -> str:
    """The tasks, where they are not all 13."""
    tasks = list(record.scores.get("tasks", ()))
    return f", {', '.join(tasks)} only" if 0 < len(tasks) < 13 else ""
