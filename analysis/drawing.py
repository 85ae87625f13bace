"""The one loop that draws, behind `python -m tables`, `python -m figures` and
`python -m report.pages`.

A table or a figure is a module of tables/ or figures/. One that is beyond the paper is in their
folder beyond/, and so is what is drawn by it.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from analysis import results
from analysis.results import NotMeasured, Results
from core import discovery
from core.errors import InputError, check_choice
from experiments.kit import command_line, records


class Drawn(NamedTuple):
    """What was drawn.

    Attributes:
        files: where it is.
        text: what a terminal shows of it.
    """

    files: list[Path]
    text: str


def modules(kind: str) -> dict[str, str]:
    """The dotted names of the modules of a kind by their own names, the paper's first.

    Args:
        kind: "tables" or "figures".
    """
    dotted = [*discovery.names(kind), *discovery.names(f"{kind}.{records.BEYOND}")]
    return {name.rpartition(".")[2]: name for name in dotted}


def module(kind: str, name: str) -> str:
    """The dotted name of one of them; InputError if there is none of that name."""
    listed = modules(kind)
    check_choice(name, kind.removesuffix("s"), listed)
    return listed[name]


def place(kind: str, name: str, measured: Results) -> Path:
    """Where it is drawn of a model, without the suffix: beside the folder of records."""
    dotted = modules(kind).get(name) or records.program(name)
    folder = results.root(measured.folder) / kind / measured.model.name
    return folder.joinpath(*dotted.split(".")[1:])


def main(kind: str, draw: Callable[[str, Results], Drawn], doc: str) -> None:
    """The command line of tables or figures: draw those that it names, of one or every model.

    A line for each model says what is left out for want of records.

    Args:
        kind: "tables" or "figures".
        draw: draws one of them, by its name, of a model.
        doc: the help.
    """
    listed = modules(kind)
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    among = f"among {', '.join(listed)} (default: all)"
    parser.add_argument("names", nargs="*", metavar="NAME", help=among)
    every = "the model to render (default: every model that has records)"
    parser.add_argument("--model", help=every)
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    names = arguments.names or list(listed)
    model, folder = results.chosen(arguments.model, arguments.results)
    measured = {name: Results.of(name, folder) for name in models(folder, model)}
    asked = [(model, name) for model in measured for name in names]
    for name in listed.keys() & set(names):
        importlib.import_module(listed[name])  # once, and not in each process
    jobs = [functools.partial(_if_measured, draw, name, measured[model]) for model, name in asked]
    missing: dict[str, dict[str, NotMeasured]] = {}
    for (model, name), outcome in zip(asked, each(jobs)):
        if isinstance(outcome, NotMeasured):
            missing.setdefault(model, {})[name] = outcome
            continue
        if arguments.names:
            print(outcome.text)
        print(*map(os.path.relpath, outcome.files), sep="\n", flush=True)
    if arguments.names and sum(map(len, missing.values())) == len(asked):
        raise next(iter(missing[asked[0][0]].values()))
    for model, left_out in missing.items():
        words = [next(iter(left_out)), "--model", model]
        if arguments.results:
            words += ["--results", str(arguments.results)]
        print(
            f"left out of {model}: {', '.join(left_out)}; "
            f"`python -m {kind} {shlex.join(words)}` says why for the first."
        )


def models(folder: Path, model: str | None = None) -> list[str]:
    """The model, or every model that has records there; InputError if there is none."""
    named = [model] if model else results.models(folder)
    if not named:
        raise InputError(f"no records under {folder}; measure something, or give --results.")
    return named


def _if_measured(
    draw: Callable[[str, Results], Drawn], name: str, measured: Results
) -> Drawn | NotMeasured:
    try:
        return draw(name, measured)
    except NotMeasured as error:
        return error


def each(jobs: Iterable[Callable], processes: int | None = None) -> Iterator:
    """What each job returns, in their order, from as many processes as there are processors.

    Args:
        jobs: without arguments; each and its outcome can be pickled.
        processes: how many; 1 works in this process.
    """
    jobs = list(jobs)
    processes = min(processes or os.cpu_count() or 1, len(jobs))
    if processes <= 1:
        yield from map(_called, jobs)
        return
    fork = multiprocessing.get_context("fork")  # this process has imported what the others need
    # Ctrl-C is answered once, by the process that all others are forked from.
    ignored = signal.SIGINT, signal.SIG_IGN
    with ProcessPoolExecutor(processes, fork, signal.signal, ignored) as pool:
        yield from pool.map(_called, jobs)


def _called(job: Callable) -> object:
    return job()
