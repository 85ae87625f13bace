"""The command line that renders tables or figures from records, for chosen ones and models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from analysis import results
from analysis.results import NotMeasured, Results, root
from core import discovery
from core.errors import InputError
from experiments.kit import command_line

Make = Callable[[str, Results, Path], tuple[list[Path], str]]  # writes into a folder: the files, and what to print


def modules(kind: str) -> dict[str, str]:
    """The dotted names of the modules of tables or figures by their own names, the paper's first."""
    return {name.rpartition(".")[2]: name for name in [*discovery.names(kind), *discovery.names(f"{kind}.beyond")]}


def place(module: str) -> str:
    """Where what a module makes lies in a model's folder, without suffix, as beyond/learned."""
    return module.partition(".")[2].replace(".", "/")


def run(doc: str, kind: str, make: Make) -> None:
    """Render into KIND/MODEL/ beside the records; what has no records is skipped, unless nothing has.

    Args:
        kind: "tables" or "figures".
    """
    known = list(modules(kind))
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(known)} (default: all)")
    parser.add_argument("--model", help="the model to render (default: every model that has records)")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    folder = results.place(arguments.model, arguments.results)
    models = [arguments.model] if arguments.model else results.models(folder)
    if not models:
        raise InputError(f"there are no records under {folder}; measure something, or give --results.")
    missing, count = None, 0
    for measured in (Results.of(model, folder) for model in models):
        for name in arguments.names or known:
            try:
                written, text = make(name, measured, root(folder) / kind / measured.model.name)
            except NotMeasured as error:
                missing = error
                continue
            count += 1
            print(*([text] if arguments.names else []), *map(os.path.relpath, written), sep="\n")
    if missing and not count:
        raise missing
