"""The command line of all figures: read records, write figures/MODEL/NAME.pdf and NAME.png.

    python -m figures                        every figure of every model
    python -m figures passkey --model tiny   one of them, and its caption

A figure is a module of figures/ or, beyond the paper, of figures/beyond/ and is then written to
figures/MODEL/beyond/. CONTRIBUTING.md shows how to add one. Its docstring is its caption: the first
line is the title, what follows says how to read it.
"""

from __future__ import annotations

import ast
import importlib
import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import rendering
from analysis.results import Results
from core import files
from experiments.kit.records import ROOT

if TYPE_CHECKING:  # a caption needs no matplotlib
    from matplotlib.figure import Figure

# Without a date or a program's version, so that the same records give the same files.
_METADATA = {"pdf": {"CreationDate": None}, "png": {"Software": None}}


def build(name: str, results: Results) -> Figure:
    """A figure of a model.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: no figure of that name.
    """
    module = rendering.module("figures", name)
    from figures.kit import style

    style.use()
    return importlib.import_module(module).build(results)


def caption(name: str) -> tuple[str, str]:
    """A figure's title and how to read it, from its module's docstring; the second may be empty."""
    file = ROOT / f"{rendering.module('figures', name).replace('.', '/')}.py"
    title, _, reading = (ast.get_docstring(ast.parse(file.read_text())) or name).partition("\n\n")
    return title, " ".join(reading.split())


def write(name: str, results: Results, folder: Path) -> tuple[list[Path], str]:
    """Render one figure of a model."""
    figure = build(name, results)
    from matplotlib import pyplot

    if layout := figure.get_layout_engine():  # once for both formats
        layout.execute(figure)
        with pyplot.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
    written, path = [], rendering.output_path(rendering.module("figures", name))
    for suffix, metadata in _METADATA.items():
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix, metadata=metadata)
        written.append(files.write(folder / f"{path}.{suffix}", drawn.getvalue()))
    pyplot.close(figure)
    title, reading = caption(name)
    return written, textwrap.fill(f"{results.model.title}, {title} {reading}", 100)


def main() -> None:
    """Draw the figures that the command line asks for."""
    rendering.run(__doc__, "figures", write)
