"""A ranking of methods as a picture, where matplotlib is installed."""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from core import files
from core.errors import InputError
from eval.beyond.ranking import GUESS, Ranking, minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"within": "#999999", "beyond": "#0072B2"}
_LINE = 0.28  # inches of height for a setting


def optional(package: str, what: str) -> ModuleType:
    """A package that is not installed with this one; InputError if it is missing.

    Args:
        what: needs it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise InputError(
            f"{what} needs {name}, which is not installed; pip install {name}."
        ) from error


def check(file: Path) -> None:
    """Raise InputError, before any work, unless a picture can be written to this file."""
    bases = optional("matplotlib.backend_bases", "--plot")
    kinds = bases.FigureCanvasBase.get_supported_filetypes()
    if file.suffix.removeprefix(".") not in kinds:
        raise InputError(f"{file} ends in no format of a picture; give a .png, .pdf or .svg file.")
    files.check_writable(file.parent)


def draw(ranking: Ranking, title: str, file: Path) -> None:
    """Write the picture: a line for each setting, the best first; a panel for keys, if they were
    asked for, and one for losses."""
    rows = ranking.rows
    panels = {"loss": "loss of the texts: nats a token"}
    if rows[0].asked:
        panels = {"nats": "keys of five digits hidden in the texts: nats a key"} | panels
    size = (3 + 3.2 * len(panels), 1.6 + _LINE * len(rows))
    figure = optional("matplotlib.figure", "--plot").Figure(size, layout="constrained")
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (what, label) in zip(every, panels.items(), strict=True):
        _panel(axes, ranking, what)
        axes.set_xlabel(f"{label}\n(less is better)")
    names = [row.name if row.extends else f"{row.name} (not extended)" for row in rows]
    every[0].set_yticks(range(len(rows)), names)
    every[0].set_ylim(len(rows) - 0.5, -0.5)
    columns = 1 if len(panels) == 1 else 3
    handles, labels = every[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    figure.suptitle(title, fontsize="medium")
    drawn = io.BytesIO()
    figure.savefig(drawn, format=file.suffix.removeprefix("."), dpi=200)
    files.write(file, drawn.getvalue())


def _panel(axes: Axes, ranking: Ranking, what: str) -> None:
    """The means of each setting; of one that is far off, its number at the edge."""
    means = {
        where: np.array([row.mean(f"{what}_{where}") for row in ranking.rows]) for where in COLOURS
    }
    limit = _limit(np.maximum(*means.values()))
    near = {where: np.flatnonzero(values <= limit) for where, values in means.items()}
    for where, colour in COLOURS.items():
        shown = means[where][near[where]]
        axes.plot(shown, near[where], "o", color=colour, label=f"{where} L, mean over texts")
    gaps = [minus(row, ranking.methods[0], f"{what}_beyond") for row in ranking.rows]
    if gaps[0].known:
        axes.errorbar(
            means["beyond"][near["beyond"]],
            near["beyond"],
            xerr=np.array([gap.half for gap in gaps])[near["beyond"]],
            fmt="none",
            color=COLOURS["beyond"],
            label="95 % interval of the difference to the first",
        )
    for place in range(len(ranking.rows)):
        far = {where: values[place] for where, values in means.items() if values[place] > limit}
        if far:
            numbers = ", ".join(f"{where} {value:.2f}" for where, value in far.items())
            edge = axes.get_yaxis_transform()
            text = axes.text(0.98, place, f"{numbers} →", transform=edge, ha="right", va="center")
            text.set_bbox({"color": "white", "pad": 1})
    if what == "nats":
        axes.axvline(GUESS, color="black", linestyle=":")
        axes.text(GUESS, -0.5, "a guess", ha="center", va="bottom", fontsize="small")
    axes.axhline(len(ranking.methods) - 0.5, color="black", linewidth=0.6)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)


def _limit(values: np.ndarray) -> float:
    """What is not far off: up to four times as far above the least as the median is."""
    middle = float(np.median(values))
    return middle + 3 * (middle - float(values.min()))
