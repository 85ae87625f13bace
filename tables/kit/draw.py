"""Draw one table of a model: from records to tables/MODEL/NAME.tex."""

from analysis import drawing
from analysis.results import Record, Results
from analysis.scores import counted
from core import files
from tables.benchmarks import benchmark
from tables.kit import latex, markdown
from tables.kit.table import Table


def draw(name: str, measured: Results) -> drawing.Drawn:
    """Write tables/MODEL/NAME.tex."""
    built = table(name, measured)
    file = drawing.place("tables", name, measured).with_suffix(".tex")
    files.write(file, latex.render(built))
    return [file], markdown.render(built, escape=False)


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
    shown = [each for each in measured.experiments() if name.endswith(each)]
    if measured.is_quick and shown:
        return built.sketched(_size(measured.records(max(shown, key=len))))
    return built


def _size(recorded: list[Record]) -> str:
    """Of how many training steps and items at most some records are."""
    steps = max((run.training.get("steps", 0) for run in recorded if run.training), default=0)
    items = counted(max(map(_items, recorded)), "item")
    return f"{counted(steps, 'training step')} and {items}" if steps else items


def _items(record: Record) -> int:
    """How many samples, documents or texts a record is of; 0 if it does not say."""
    data = record.run.get("data")
    if not isinstance(data, dict):
        return 0
    if "samples" in data:
        return data["samples"]
    documents = [each["documents"] for each in data.values() if isinstance(each, dict)]
    return sum(documents) or len(data)
