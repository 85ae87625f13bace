"""The command line that renders tables or figures from records, for chosen ones and models."""

import functools
import multiprocessing
import os
import shlex
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from analysis import results
from analysis.results import NotMeasured, Results, root
from core import discovery
from core.errors import InputError, check_choice
from experiments.kit import command_line

Render = Callable[
    [str, Results, Path], tuple[list[Path], str]
]  # writes into a folder: the files, and what to print


def modules(kind: str) -> dict[str, str]:
    """The dotted names of the modules of tables or figures by their own names, the paper's
    first."""
    return {
        name.rpartition(".")[2]: name
        for name in [*discovery.names(kind), *discovery.names(f"{kind}.beyond")]
    }


def module(kind: str, name: str) -> str:
    """The dotted name of one of them; InputError if there is none of that name."""
    listed = modules(kind)
    check_choice(name, kind.removesuffix("s"), listed)
    return listed[name]


def output_path(module: str) -> str:
    """The path of a module's output in a model's folder, without suffix, as beyond/learned."""
    return module.partition(".")[2].replace(".", "/")


def run(doc: str, kind: str, render: Render) -> None:
    """Render into KIND/MODEL/ beside the records; a line for each model names what is left out for
    want of records.

    Args:
        kind: "tables" or "figures".
        render: renders one of them for one model; each call is a process of its own.
    """
    names = list(modules(kind))
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"among {', '.join(names)} (default: all)"
    )
    parser.add_argument(
        "--model", help="the model to render (default: every model that has records)"
    )
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    model, folder = results.chosen(arguments.model, arguments.results)
    models = [model] if model else results.models(folder)
    if not models:
        raise InputError(
            f"there are no records under {folder}; measure something, or give --results."
        )
    tasks = [
        (name, Results.of(model, folder)) for model in models for name in arguments.names or names
    ]
    missing: dict[str, dict[str, NotMeasured]] = {}
    fork = multiprocessing.get_context("fork")  # this process has imported what the others need
    ignored = (
        signal.SIGINT,
        signal.SIG_IGN,
    )  # Ctrl-C is answered once, by the process that all others are forked from
    with ProcessPoolExecutor(os.cpu_count(), fork, signal.signal, ignored) as pool:
        for (name, measured), outcome in zip(
            tasks, pool.map(functools.partial(_rendered, kind, render), tasks)
        ):
            if isinstance(outcome, NotMeasured):
                missing.setdefault(measured.model.name, {})[name] = outcome
                continue
            files, text = outcome
            print(
                *([text] if arguments.names else []),
                *map(os.path.relpath, files),
                sep="\n",
                flush=True,
            )
    if arguments.names and sum(map(len, missing.values())) == len(tasks):
        raise next(iter(missing[models[0]].values()))
    for model, left_out in missing.items():
        words = [next(iter(left_out)), "--model", model]
        if arguments.results:
            words += ["--results", str(arguments.results)]
        print(
            f"left out of {model}: {', '.join(left_out)}; "
            f"`python -m {kind} {shlex.join(words)}` says why for the first."
        )


def _rendered(
    kind: str, render: Render, task: tuple[str, Results]
) -> tuple[list[Path], str] | NotMeasured:
    name, measured = task
    try:
        return render(name, measured, root(measured.folder) / kind / measured.model.name)
    except NotMeasured as error:
        return error
