"""Table 8: RULER by length, mean over its tasks."""

from analysis import metrics
from analysis.results import Record, Results
from tables.kit.benchmark_table import benchmark
from tables.kit.table import Table

CAPTION = (
    "RULER: the mean score (%) of its tasks, by evaluation length in tokens. Measured rows have "
    "95 % intervals for samples (Wilson's over all tasks, wide rather than narrow) and, where "
    "there are several, for training seeds (Student's). The best is bold."
)


def build(results: Results) -> Table:
    """From the records of experiments.ruler."""
    return benchmark(results, "ruler", CAPTION, metrics.ruler, "Table 8", title_suffix)


def title_suffix(record: Record) -> str:
    """How many tasks, where they are not all 13, and what one prompt counts, where a task has only
    one."""
    count = len(record.run["tasks"])
    tasks = "" if count == 13 else f", {count} of 13 tasks"
    if record.run.get("samples") != 1:
        return tasks
    return f"{tasks}, one prompt a task, each {100 / count:.1f} points"
