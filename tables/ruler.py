"""Table 8: RULER by length, mean over its tasks."""

from collections.abc import Iterable
from dataclasses import replace

from analysis import metrics
from analysis.comparison import Comparison, agree
from analysis.results import Results
from analysis.settings import tokens
from core import roles
from tables.kit.benchmark_table import benchmark, labelled_rows, main_comparisons
from tables.kit.table import NONE, Block, Cell, Table

CAPTION = (
    "RULER: the mean score (%) of its tasks, by evaluation length in tokens. Measured rows have "
    "95 % intervals for "
    "samples (Wilson's over all tasks, wide rather than narrow) and, where there are several, for "
    "training seeds "
    "(Student's). The best is bold. Beyond the paper, a measured row has its effective length: "
    "the longest of these "
    "lengths at which it scores at least what the unextended model scores at L, and in brackets "
    "the longest at which "
    "the lower end of its interval does."
)


def build(results: Results) -> Table:
    """From the records of experiments.ruler."""
    table = benchmark(results, "ruler", CAPTION, metrics.ruler, "Table 8", title_suffix)
    measured = [rows for _, _, rows in main_comparisons(results, "ruler")]
    published = table.blocks[: -len(measured)]
    blocks = (
        _with_effective(*pair, results) for pair in zip(table.blocks[len(published) :], measured)
    )
    return replace(table, blocks=(*published, *blocks))


def title_suffix(record: dict) -> str:
    """How many tasks, where they are not all 13."""
    count = len(record["tasks"])
    return "" if count == 13 else f", {count} of 13 tasks"


def _with_effective(block: Block, rows: Comparison, results: Results) -> Block:
    """The block with a column of effective lengths, if the unextended model was measured at L on
    the same samples."""
    at_l = str(results.model.context_length)
    for record in results.records("ruler"):
        if (record["method"], "training" in record) == (roles.ORIGINAL, False) and agree(
            record, rows.first
        ):
            if at_l not in (lengths := record["scores"]["lengths"]):
                break
            threshold = metrics.ruler(record)[tokens(int(at_l))].mean
            scored = [row.scores(metrics.ruler) for _, row in labelled_rows(rows, metrics.ruler)]
            cells = [effective(scores, lengths, threshold) for scores in scored]
            lines = ((*line, cell) for line, cell in zip(block.rows, cells, strict=True))
            return Block(
                block.title, (*block.header, f"Effective, ≥ {threshold:.1f}"), tuple(lines)
            )
    return block


def effective(scores: metrics.Scores, lengths: Iterable[str], threshold: float) -> Cell:
    """The longest length at which the score is at least a threshold, and that of the lower end of
    its interval.

    The threshold is the unextended model's score at L. RULER (arXiv 2404.06654, section 4) takes
    LLaMA2-7B's at its 4k tokens for all models.
    """
    least = threshold - 1e-9  # equal scores differ by the order in which their tasks were summed
    names = [name for name in map(tokens, sorted(map(int, lengths))) if name in scores]
    means = [name for name in names if scores[name].mean >= least]
    lows = [name for name in names if scores[name].low is not None and scores[name].low >= least]
    return Cell([NONE, *means][-1], f"[{[NONE, *lows][-1]}]")
