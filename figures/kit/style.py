"""What every figure shares: sizes, type, and how a setting is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from analysis.settings import Setting
from core import rope

COLUMN, PAGE = 3.3, 6.9  # widths in inches of a column and of a page of a two-column paper

# For what a registration leaves out: colours far from each other, from black and from the registered solid line, to
# colour-blind eyes too, and dashes unlike those that are registered.
_COLOURS = ("#882255", "#332288", "#77AA66", "#664400")
_DASHES = ("-", (0, (2, 2)), (0, (9, 2, 3, 2)), (0, (1, 3)), (0, (12, 2, 2, 2, 2, 2)))
AS_IT_IS = ("#000000", "-")  # a checkpoint that no method here extended


def styles(settings: Iterable[Setting]) -> dict[Setting, rope.Style]:
    """(colour, line style) of each setting of a figure, the same whatever stands beside it where it is registered.

    A method is drawn as its registration says, its settings with other options as the further styles there; whatever
    they leave out takes the next free pair of a colour and a dash.
    """
    free = itertools.cycle(itertools.product(_DASHES, _COLOURS))  # twenty pairs, then again
    looks: dict[tuple, rope.Style] = {(None, ()): AS_IT_IS}  # by method and options
    with_options: dict[tuple, list[tuple]] = {}
    ordered = sorted(set(settings), key=lambda one: (*one.order, str(one.method)))
    for setting in ordered:
        method = rope.METHODS.get(setting.method)
        known = method.styles if method else ()
        # They count within a scaling factor: n̂ differs from one to the next, its style does not.
        others = with_options.setdefault((setting.method, setting.factor), [()])
        if not setting.plain() and setting.options not in others:
            others.append(setting.options)
        place = 0 if setting.plain() else others.index(setting.options)
        if (setting.method, setting.options) not in looks:
            looks[setting.method, setting.options] = known[place] if place < len(known) else next(free)[::-1]
    return {setting: looks[setting.method, setting.options] for setting in ordered}


def line(style: rope.Style) -> dict:
    """A style as matplotlib's arguments."""
    return {"color": style[0], "linestyle": style[1]}


def use() -> None:
    """Small sans serif type, light grid, embedded fonts."""
    plt.rcParams.update(
        {
            "font.size": 8,
            "axes.titlesize": 8,
            "axes.labelsize": 8,
            "legend.fontsize": 7,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#dddddd",
            "grid.linewidth": 0.5,
            "axes.axisbelow": True,
            "lines.linewidth": 1.2,
            "legend.frameon": False,
            "figure.constrained_layout.use": True,
            "pdf.fonttype": 42,
            "savefig.dpi": 200,
        }
    )


def mark_length(axes: Axes, position: float, name: str = "L") -> None:
    """A dotted line at a position of the axis, named at its upper end."""
    axes.axvline(position, color="black", linewidth=0.8, linestyle=":")
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate(name, (position, 1), xytext=(2, -2), va="top", fontsize=7, **place)


def compress(axes: Axes) -> None:
    """Draw differences of losses linearly up to 0.1 nat and logarithmically beyond."""
    axes.set_yscale("symlog", linthresh=0.1)
    axes.yaxis.set_major_locator(FixedLocator((-1, -0.5, -0.2, -0.1, -0.05, 0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")


def one_legend(figure, panels: Iterable[Axes], columns: int) -> None:
    """One legend above the figure, each label once; a setting looks the same in each panel."""
    handles = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels())}
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)
