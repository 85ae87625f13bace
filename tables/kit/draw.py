"""Draw one table of a model: from records to tables/MODEL/NAME.tex."""

from analysis import drawing
from analysis.results import Results
from core import files
from tables.benchmarks import benchmark
from tables.kit import latex, markdown
from tables.kit.table import Table


def draw(name: str, measured: Results) -> drawing.Drawn:
    """Write tables/MODEL/NAME.tex."""
    built = table(name, measured)
    file = drawing.place("tables", name, measured).with_suffix(".tex")
    written = files.write(file, latex.render(built))
    return [written], markdown.render(built, escape=False)


def table(name: str, measured: Results) -> Table:
    """A table of a model; a sketch where its records are.

    Of an experiment that has records and no table, it holds the scores of the records.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: neither a table nor an experiment that has records.
    """
    if name in measured.experiments() and name not in drawing.declared("tables"):
        built = benchmark(measured, name, f"{name}, 95 % intervals in brackets.")
    else:
        built = drawing.function("tables", name)(measured)
    is_measured = any(name.endswith(each) for each in measured.experiments())
    return built.sketched() if measured.is_quick and is_measured else built
