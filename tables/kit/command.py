"""The command line of all tables: read records, write tables/MODEL/NAME.tex.

    python -m tables                      every table of every model
    python -m tables ruler --model tiny   one of them, printed as text, too

A table is a module of tables/ or, beyond the paper, of tables/beyond/ and is then written to
tables/MODEL/beyond/. An experiment that has records and no module here gets a table of the scores
that they hold.
"""

import importlib
from pathlib import Path

from analysis import metrics, rendering
from analysis.results import Results
from core import files
from experiments.kit import records
from tables.kit import latex, markdown
from tables.kit.benchmark_table import benchmark
from tables.kit.table import Table


def build(name: str, measured: Results) -> Table:
    """A table of a model; that of a quick run has no best.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: neither a table nor an experiment that has records.
    """
    if name in measured.experiments() and name not in rendering.modules("tables"):
        table = benchmark(measured, name, f"{name}, 95 % intervals in brackets.", metrics.generic)
    else:
        table = importlib.import_module(rendering.module("tables", name)).build(measured)
    return table.unranked() if measured.is_quick else table


def main() -> None:
    """Write the tables that the command line asks for."""
    rendering.run(__doc__, "tables", write)


def write(name: str, measured: Results, folder: Path) -> tuple[list[Path], str]:
    """Render one table of a model."""
    table = build(name, measured)
    module = rendering.modules("tables").get(name) or records.program(name)
    file = files.write(folder / f"{rendering.output_path(module)}.tex", latex.render(table))
    return [file], markdown.render(table, escape=False)
