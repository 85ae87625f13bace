"""What every figure shares: sizes, type, and how a setting is drawn."""

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from analysis.settings import Setting
from core import rope

# widths in inches of a column and of a page of a two-column paper
COLUMN = 3.3
PAGE = 6.9

# For what a registration leaves out: colours and dashes unlike those that are registered.
_COLOURS = ("#AA4499", "#6699CC", "#88AA55", "#AA7700", "#DD7788")
_DASHES = ("-", (0, (2, 2)), (0, (9, 2, 3, 2)), (0, (1, 3)), (0, (12, 2, 2, 2, 2, 2)))
AS_IT_IS = ("#000000", "-")  # a checkpoint that no method here extended
_NAME = 17  # characters of a line of a curve's name


def styles(settings: Iterable[Setting]) -> dict[Setting, rope.Style]:
    """(colour, line style) of each setting of a figure.

    A method is drawn as its registration says, and its settings with other options as the further
    styles there, those of each scaling factor alike: n̂ differs between factors. What a registration
    leaves out takes the next free pair of a dash and a colour.
    """
    free = itertools.cycle(itertools.product(_DASHES, _COLOURS))
    options: dict[tuple, list[tuple]] = {}  # of a method at a factor; none at all are the first
    chosen = {(None, 0): AS_IT_IS}
    drawn = {}
    for setting in sorted(set(settings), key=lambda one: (*one.order, str(one.method))):
        of_method = options.setdefault((setting.method, setting.factor), [()])
        own = () if setting.plain() else setting.options
        if own not in of_method:
            of_method.append(own)
        place = of_method.index(own)
        look = (setting.method, place)
        if look not in chosen:
            method = rope.METHODS.get(setting.method)
            if method is not None and place < len(method.styles):
                chosen[look] = method.styles[place]
            else:
                dash, colour = next(free)
                chosen[look] = (colour, dash)
        drawn[setting] = chosen[look]
    return drawn


def line(style: rope.Style) -> dict:
    """A style as matplotlib's arguments."""
    return {"color": style[0], "linestyle": style[1]}


def use() -> None:
    """Draw in the style of figures/paper.mplstyle."""
    plt.style.use(Path(__file__).parent.parent / "paper.mplstyle")


def mark_length(axes: Axes, position: float, name: str = "L") -> None:
    """A dotted line at a position of the axis, named at its upper end."""
    axes.axvline(position, color="black", linewidth=0.8, linestyle=":")
    coordinates = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.annotate(
        name, (position, 1), xytext=(2, -2), va="top", fontsize=7, bbox=white, **coordinates
    )


def compress(axes: Axes) -> None:
    """Draw differences of losses linearly up to 0.1 nat and logarithmically beyond, if there are
    any."""
    if max(map(abs, axes.get_ylim())) <= 0.1:
        return
    axes.set_yscale("symlog", linthresh=0.1)
    axes.yaxis.set_major_locator(
        FixedLocator((-1, -0.5, -0.2, -0.1, -0.05, 0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5))
    )
    axes.yaxis.set_major_formatter("{x:g}")


def name_curves(
    axes: Axes, ends: Mapping[str, tuple[float, float]], colours: Mapping[str, str]
) -> None:
    """Name curves at their right end, each in its colour; names do not hide each other.

    Args:
        ends: the last point of each curve, by its name.
    """
    axes.autoscale_view()
    height = 72 * axes.get_window_extent().height / axes.figure.dpi
    heights = {
        name: (axes.transScale + axes.transLimits).transform(end)[1] for name, end in ends.items()
    }
    names = sorted(ends, key=heights.get)
    texts = [
        textwrap.fill(name.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"), _NAME)
        for name in names
    ]
    # of its lines, as a share of the axes' height
    sizes = [8.5 * (1 + text.count("\n")) / height for text in texts]
    most = 1 + sizes[-1] / 2 if sizes else 1
    places = apart([heights[name] for name in names], sizes, most)
    for name, text, place in zip(names, texts, places):
        line = {"arrowstyle": "-", "linewidth": 0.4, "relpos": (0, 0.5), "shrinkA": 0}
        look = {"va": "center", "fontsize": 6.5, "annotation_clip": False}
        axes.annotate(
            text,
            ends[name],
            (1.07, place),
            textcoords="axes fraction",
            color=colours[name],
            arrowprops=line | {"color": colours[name]},
            **look,
        )


def apart(wanted: Sequence[float], sizes: Sequence[float], most: float) -> list[float]:
    """Where names stand along an axis so that none hides another, near to where they are wanted.

    Args:
        wanted: the middle of each, ascending.
        sizes: how much room each takes.
        most: where the last one ends at most.
    """
    places = list(wanted)
    for index in range(1, len(places)):
        least = places[index - 1] + (sizes[index - 1] + sizes[index]) / 2
        places[index] = max(places[index], least)
    for index in reversed(range(len(places))):
        places[index] = min(places[index], most - sizes[index] / 2)
        most = places[index] - sizes[index] / 2
    return places


def one_legend(figure, panels: Iterable[Axes], columns: int) -> None:
    """One legend above the figure, each label once; a setting looks the same in each panel."""
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels())
    }
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)
