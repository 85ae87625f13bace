"""The command line of all tables: read records, write tables/<model>/NAME.tex.

    python -m tables                      every table of every model that has records
    python -m tables ruler --model tiny   one of them

A name that is no table here but an experiment with records gets a table of the scores that they hold.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import tables
from analysis import metrics, rendering
from analysis.results import Results
from core import files
from core.errors import InputError
from experiments.kit import command_line
from tables.kit import latex
from tables.kit.benchmark_table import benchmark
from tables.kit.table import Table


def names() -> list[str]:
    """The tables there are: the modules of this package."""
    return [
        module.name for module in pkgutil.iter_modules(tables.__path__) if not module.ispkg and module.name[0] != "_"
    ]


def build(name: str, measured: Results) -> Table:
    """A table of a model.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: neither a table nor an experiment that has records.
    """
    if name in names():
        return importlib.import_module(f"tables.{name}").build(measured)
    if name in measured.experiments():
        return benchmark(measured, name, f"{name}, 95 % intervals in brackets.", metrics.generic)
    raise InputError(f"unknown table {name!r}; choose one of {', '.join(names())}, or an experiment with records.")


def main() -> None:
    rendering.run(__doc__, "tables", names(), write)


def write(name: str, measured: Results, folder: Path) -> list[Path]:
    """Render one table of a model; what it leaves out is named on the terminal, too."""
    table = build(name, measured)
    for note in table.notes:
        print(f"note: {measured.model.name}, {name}: {note}", file=sys.stderr)
    file = folder / f"{name}.tex"
    files.write(file, latex.render(table))
    return [file]


if __name__ == "__main__":
    command_line.run(main)
