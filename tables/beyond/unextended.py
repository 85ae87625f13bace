"""The unextended model on every benchmark."""

from __future__ import annotations

from analysis.beyond import unextended
from analysis.results import NotMeasured, Results
from tables.kit.benchmark_table import OVER_TEXTS
from tables.kit.table import Block, Cell, Table, score_cell

CAPTION = (
    "The model without extension, on every benchmark that was run on it. Brackets hold 95 % intervals: by bootstrap "
    "over items, for passkeys and RULER Wilson's. Perplexity is exp of the mean loss over texts; in each text every "
    f"token weighs the same, or every window. Of it: {OVER_TEXTS[0].lower()}{OVER_TEXTS[1:]}"
)


def build(results: Results) -> Table:
    """From the records of every benchmark."""
    lines = unextended.lines(results)
    if not lines:
        raise NotMeasured(
            f"no benchmark of the unextended model under {results.folder / results.model.name}; measure one with "
            f"`{results.command('passkey', '--method original')}`, for instance."
        )
    rows = tuple((Cell(line.name), Cell(line.amount), score_cell(line.score, line.digits)) for line in lines)
    block = Block(f"{results.model.title}, measured without training", ("Benchmark", "what", "score"), rows)
    return Table("unextended", CAPTION, (block,))
