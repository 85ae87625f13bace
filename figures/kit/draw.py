"""Draw one figure of a model: from records to figures/MODEL/NAME.png and NAME.pdf."""

from __future__ import annotations

import ast
import importlib
import textwrap
from typing import TYPE_CHECKING

from analysis import drawing
from analysis.results import Results
from experiments.kit import records

if TYPE_CHECKING:  # pages need captions and no matplotlib
    from matplotlib.figure import Figure


def figure(name: str, measured: Results) -> Figure:
    """A figure of a model.

    Raises:
        NotMeasured: no record of what it shows.
        InputError: no figure of that name.
    """
    from figures.kit import style

    found = importlib.import_module(drawing.module("figures", name))
    style.use()
    return found.build(measured)


def draw(name: str, measured: Results) -> drawing.Drawn:
    """Write figures/MODEL/NAME.png and NAME.pdf."""
    from figures.kit import image

    written = image.save(figure(name, measured), drawing.place("figures", name, measured))
    title, reading = caption(name)
    return drawing.Drawn(written, textwrap.fill(f"{measured.model.title}, {title} {reading}", 100))


def caption(name: str) -> tuple[str, str]:
    """A figure's title and how to read it, from its module's docstring; the second may be empty."""
    file = records.ROOT / f"{drawing.module('figures', name).replace('.', '/')}.py"
    title, _, reading = (ast.get_docstring(ast.parse(file.read_bytes())) or name).partition("\n\n")
    return title, " ".join(reading.split())
