"""The unextended model on every benchmark."""

from __future__ import annotations

from analysis import as_it_is
from analysis.results import NotMeasured, Results
from tables.kit.model import Block, Cell, Table, score_cell

CAPTION = (
    "The model as it is, without extension, on every benchmark that it was measured on; perplexity is "
    "token-weighted, or the mean over windows. In brackets: 95 % intervals, bootstrap over items or windows, "
    "Wilson's for passkeys and RULER."
)


def build(results: Results) -> Table:
    """From the records of every benchmark."""
    lines = as_it_is.lines(results)
    if not lines:
        raise NotMeasured(
            f"no benchmark of the unextended model under {results.folder / results.scale.name}; measure one with "
            "`python -m experiments.passkey`, for instance."
        )
    rows = tuple((Cell(line.name), Cell(line.amount), score_cell(line.score, line.digits)) for line in lines)
    block = Block(f"{results.scale.title}, measured without training", ("Benchmark", "what", "score"), rows)
    return Table("benchmarks", CAPTION, (block,))
