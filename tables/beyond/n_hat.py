"""Every evaluation by n̂, the number of interpolated dimensions.

Without training, at the longest length.
"""

from __future__ import annotations

from analysis.beyond import n_hat
from analysis.results import Results
from tables.kit.benchmark_table import OVER_TEXTS, QUICK
from tables.kit.table import Table, score_block

CAPTION = (
    "Influence of n̂ without training on the mean loss beyond L (nats per token), sliding-window perplexity, "
    "passkeys of all lengths (%), RULER (%) and the mean of the Open LLM benchmarks (%). Of the benchmarks, brackets "
    f"hold 95 % intervals over prompts or items. Of losses: {OVER_TEXTS[0].lower()}{OVER_TEXTS[1:]} The best is bold."
)


def build(results: Results) -> Table:
    """From DPRoPE's records of every experiment in the suite that goes through n̂."""
    factor, columns = n_hat.columns(results)
    values = sorted({value for column in columns for value in column.scores}, reverse=True)
    if not values:
        raise results.lacks("two n̂ without training", "passkey", "--method dprope --n-hat N")
    measured = [column for column in columns if column.scores]
    rows = [(str(n), {column.title: column.scores[n] for column in measured if n in column.scores}) for n in values]
    block = score_block(
        f"{results.model.title}, s = {factor:g}" + QUICK * results.quick,
        rows,
        first="n̂",
        digits={column.title: column.digits for column in columns},
        best=None if results.quick else {column.title: min if column.least else max for column in columns},
    )
    return Table("n_hat", CAPTION, (block,))
