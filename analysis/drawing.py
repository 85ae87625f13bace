"""The one loop that draws, behind `python -m tables` and `python -m figures`.

A table is a function `def NAME(results: Results) -> Table:` of a module in tables/, and a figure
one in figures/ that returns a Figure. The first paragraph of its docstring is its title, and a
figure's second one its caption. What is beyond the paper is in their folder beyond/, and so is
what is drawn by it.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import records
from analysis import results
from analysis.results import NotMeasured, Results
from core.errors import InputError, check_choice
from experiments.kit import command_line
from records import BEYOND, ROOT

Drawn = tuple[list[Path], str]  # the files of one of them, and what a terminal shows of it

_DECLARED = re.compile(
    r'^def ([a-z]\w*)\(results: Results\) -> (?:Table|Figure):\n    """(.*?)"""',
    re.MULTILINE | re.DOTALL,
)


@functools.cache
def declared(kind: str) -> dict[str, tuple[str, str]]:
    """The module and the docstring of each of a kind by its name, the paper's first.

    Nothing is imported for that.

    Args:
        kind: "tables" or "figures".
    """
    found = {}
    for package in (kind, f"{kind}.{BEYOND}"):
        folder = ROOT.joinpath(*package.split("."))
        in_package = {
            name: (f"{package}.{file.stem}", docstring)
            for file in folder.glob("*.py")
            for name, docstring in _DECLARED.findall(file.read_text(encoding="utf-8"))
        }
        found |= dict(sorted(in_package.items()))
    return found


def function(kind: str, name: str) -> Callable[[Results], Any]:
    """The function that makes one of them; InputError if there is none of that name."""
    check_choice(name, kind.removesuffix("s"), declared(kind))
    module, _ = declared(kind)[name]
    return getattr(importlib.import_module(module), name)


def caption(figure: str) -> tuple[str, str]:
    """A figure's title and how to read it."""
    _, docstring = declared("figures")[figure]
    title, reading, *_ = (" ".join(part.split()) for part in f"{docstring}\n\n".split("\n\n"))
    return title, reading


def is_beyond(kind: str, name: str) -> bool:
    """Whether a figure, a table, or an experiment that has no table, is beyond the paper."""
    module, _ = declared(kind).get(name) or (records.program(name), "")
    return BEYOND in module.split(".")


def place(kind: str, name: str, measured: Results) -> Path:
    """Where it is drawn of a model, without the suffix: beside the folder of records."""
    folder = results.root(measured.folder) / kind / measured.name
    return folder / BEYOND / name if is_beyond(kind, name) else folder / name


def main(kind: str, draw: Callable[[str, Results], Drawn], doc: str) -> None:
    """The command line of tables or figures: draw those that it names, of one or every model.

    A line for each model says what is left out for want of records.

    Raises:
        NotMeasured: no record of any of those that were named.

    Args:
        kind: "tables" or "figures".
        draw: draws one of them, by its name, of a model.
        doc: the help.
    """
    listed = declared(kind)
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    among = f"among {', '.join(listed)} (default: all)"
    parser.add_argument("names", nargs="*", metavar="NAME", help=among)
    every = "the model to render (default: every model that has records)"
    parser.add_argument("--model", help=every)
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    names = arguments.names or list(listed)
    model, folder = results.chosen(arguments.model, arguments.results)
    drawn = False
    left_out = {}
    for each in models(folder, model):
        measured = Results.of(each, folder)
        for name in names:
            try:
                files, text = draw(name, measured)
            except NotMeasured as error:
                left_out.setdefault(each, []).append(name)
                missing = error
            else:
                drawn = True
                if arguments.names:
                    print(text)
                print(*map(os.path.relpath, files), sep="\n", flush=True)
    if arguments.names and not drawn:
        raise missing
    for each, without in left_out.items():
        print(f"{each} has no records for {', '.join(without)}")


def models(folder: Path, model: str | None = None) -> list[str]:
    """The model, or every model that has records there; InputError if there is none."""
    named = [model] if model else results.models(folder)
    if not named:
        raise InputError(f"no records under {folder}; measure something, or give --results.")
    return named
