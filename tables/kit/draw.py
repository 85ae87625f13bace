"""Draw one table of a model: from records to tables/MODEL/NAME.tex."""

from __future__ import annotations

import importlib

from analysis import drawing, metrics
from analysis.results import Record, Results
from analysis.scores import counted
from core import files
from tables.kit import latex, markdown
from tables.kit.benchmark_table import benchmark
from tables.kit.table import Table


def table(name: str, measured: Results) -> Table:
    """A table of a model; a sketch where its records are.

    Of an experiment that has records and no module in tables/, it holds the scores of the records.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: neither a table nor an experiment that has records.
    """
    if name in measured.experiments() and name not in drawing.modules("tables"):
        built = benchmark(measured, name, f"{name}, 95 % intervals in brackets.", metrics.generic)
    else:
        built = importlib.import_module(drawing.module("tables", name)).build(measured)
    shown = [each for each in measured.experiments() if name.endswith(each)]
    if measured.is_quick and shown:
        return built.sketched(_size(measured.records(max(shown, key=len))))
    return built


def _size(runs: list[Record]) -> str:
    """Of how many training steps and items at most some records are, as " of 2 training
    steps and 13 items"."""
    steps = max((run.training.get("steps", 0) for run in runs if run.training), default=0)
    items = max(map(_items, runs))
    counts = {"training step": steps, "item": items}
    words = [counted(count, of) for of, count in counts.items() if count]
    return f" of {' and '.join(words)}" if words else ""


def _items(run: Record) -> int:
    """How many samples, documents or texts a record is of; 0 if it does not say."""
    data = run.run.get("data")
    if not isinstance(data, dict):
        return 0
    if "samples" in data:
        return data["samples"]
    documents = [each["documents"] for each in data.values() if isinstance(each, dict)]
    return sum(documents) or len(data)


def draw(name: str, measured: Results) -> drawing.Drawn:
    """Write tables/MODEL/NAME.tex."""
    built = table(name, measured)
    file = drawing.place("tables", name, measured).with_suffix(".tex")
    return drawing.Drawn(
        [files.write(file, latex.render(built))], markdown.render(built, escape=False)
    )
