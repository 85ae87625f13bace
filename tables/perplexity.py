"""Table 10: sliding-window perplexity by length."""

from analysis import metrics
from analysis.results import Record, Results
from tables.kit.benchmark_table import OVER_TEXTS, benchmark
from tables.kit.table import Table, titles

CAPTION = (
    "Sliding-window perplexity by evaluation length in tokens, at a stride of S = 256 unless "
    "stated. Published rows "
    "are on PG19. Measured perplexity is exp of the mean loss over the texts that a title names, "
    "each token of a text "
    f"weighing the same. {OVER_TEXTS} The best is bold."
)


def build(results: Results) -> Table:
    """From the records of experiments.perplexity; beginnings of texts and whole ones stand
    apart."""
    return benchmark(
        results,
        "perplexity",
        CAPTION,
        metrics.perplexity,
        "Table 10",
        title_suffix,
        digits=2,
        best=min,
    )


def title_suffix(record: Record) -> str:
    """Which texts and which part of them were scored, and the stride or strides, where not the
    paper's."""
    beginnings = "" if record.run["tokens"] is None else f", first {record.run['tokens']:,} tokens"
    stride = record.run["stride"]
    strides = ", ".join(map(str, stride if isinstance(stride, list) else [stride]))
    return (
        beginnings
        + ("" if stride == 256 else f", S = {strides}")
        + f", {titles(record.run['data'])}"
    )
