"""The command line of all figures: read records, write figures/<model>/NAME.pdf and NAME.png.

    python -m figures                        every figure of every model whose records or whose code have changed
    python -m figures passkey --model tiny   one of them, in any case

A figure is a module of this folder; CONTRIBUTING.md shows how to add one. Its docstring is its caption: the first line
is the title, what follows says how to read it.
"""

from __future__ import annotations

import importlib
import inspect
import io
import pkgutil
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import figures
from analysis import rendering
from analysis.results import Results
from core import files
from core.errors import InputError
from experiments.kit import command_line
from figures.kit import style

# Without a date or a program's version, so that the same records give the same files.
_METADATA = {"pdf": {"CreationDate": None}, "png": {"Software": None}}


def names() -> list[str]:
    """The figures there are: the modules of this package."""
    found = pkgutil.iter_modules(figures.__path__)
    return [module.name for module in found if not module.ispkg and module.name[0] != "_"]


def build(name: str, results: Results) -> Figure:
    """A figure of a model.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: no figure of that name.
    """
    if name not in names():
        raise InputError(f"unknown figure {name!r}; choose one of {', '.join(names())}.")
    style.use()
    return importlib.import_module(f"figures.{name}").build(results)


def caption(name: str) -> tuple[str, str]:
    """A figure's title and how to read it, from its module's docstring; the second may be empty.

    Raises:
        InputError: no figure of that name.
    """
    if name not in names():
        raise InputError(f"unknown figure {name!r}; choose one of {', '.join(names())}.")
    written = inspect.getdoc(importlib.import_module(f"figures.{name}")) or name.replace("_", " ")
    title, _, reading = written.partition("\n\n")
    return title, " ".join(reading.split())


def write(name: str, results: Results, folder: Path) -> list[Path]:
    """Render one figure of a model."""
    figure = build(name, results)
    if layout := figure.get_layout_engine():  # once for both formats
        layout.execute(figure)
        with plt.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
    made = []
    for suffix, metadata in _METADATA.items():
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix, metadata=metadata)
        made.append(files.write(folder / f"{name}.{suffix}", drawn.getvalue()))
    plt.close(figure)
    return made


def main() -> None:
    rendering.run(__doc__, "figures", names(), write, sources())


def sources() -> list[Path]:
    """The code that a figure is made by: the mathematics, the analysis, and all that draws."""
    here = Path(figures.__file__).parent
    folders = (here.parent / "core", here.parent / "eval", here.parent / "analysis", here, here / "kit")
    return [file for folder in folders for file in sorted(folder.glob("*.py"))]


if __name__ == "__main__":
    command_line.run(main)
