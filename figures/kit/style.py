"""What every figure shares: sizes, type, its title and its note, and how a setting is drawn."""

import itertools
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from core import rope
from core.setting import Setting

# widths in inches of a column and of a page of a two-column paper
COLUMN = 3.3
PAGE = 6.9
MOST = 7  # lines of a panel that can be told apart

# For what a registration leaves out: colours and dashes unlike those that are registered.
_COLOURS = ("#AA4499", "#6699CC", "#88AA55", "#AA7700", "#DD7788")
_DASHES = ("-", (0, (2, 2)), (0, (9, 2, 3, 2)), (0, (1, 3)), (0, (12, 2, 2, 2, 2, 2)))
AS_IT_IS = ("#000000", "-")  # a checkpoint that no method here extended


def _free_styles() -> Iterator[rope.Style]:
    """Each pair of a colour and a dash; of two neighbours both differ, so that they are told apart
    in grey, too."""
    for shift in itertools.cycle(range(len(_DASHES))):
        for number, colour in enumerate(_COLOURS):
            yield colour, _DASHES[(number + shift) % len(_DASHES)]


def styles(settings: Iterable[Setting]) -> dict[Setting, rope.Style]:
    """(colour, line style) of each setting of a figure.

    A method is drawn as its registration says, and its settings with other options as the further
    styles there. The same options look the same at each scaling factor, as a legend names them
    once; n̂, which differs between factors, by its rank. What a registration leaves out takes the
    next free pair of a dash and a colour.
    """
    free = _free_styles()
    chosen = {
        (method.name, place): look
        for method in rope.METHODS.values()
        for place, look in enumerate(method.styles)
    }
    chosen[None, 0] = AS_IT_IS
    ordered = sorted(set(settings), key=lambda one: (*one.order, str(one.method)))
    n_hats: dict[tuple, list] = {}  # of a method at a factor, none first
    places: dict[str | None, list] = {}  # of what sets a method's settings apart; nothing is first
    drawn = {}
    for setting in ordered:
        beside = n_hats.setdefault((setting.method, setting.factor), [None])
        rank = _place(setting.option("n_hat"), beside)
        others = [option for option in setting.options if option[0] != "n_hat"]
        apart = None if setting.plain() and not setting.last else (rank, others, setting.last)
        look = setting.method, _place(apart, places.setdefault(setting.method, [None]))
        if look not in chosen:
            chosen[look] = next(free)
        drawn[setting] = chosen[look]
    return drawn


def _place(one: object, among: list) -> int:
    """Where it stands in a list, at whose end it is added if it does not."""
    if one not in among:
        among.append(one)
    return among.index(one)


def line(style: rope.Style) -> dict:
    """A style as matplotlib's arguments."""
    return {"color": style[0], "linestyle": style[1]}


def use() -> None:
    """Draw in the style of figures/paper.mplstyle."""
    plt.style.use(Path(__file__).parent.parent / "paper.mplstyle")


def title(figure: Figure, text: str) -> None:
    """Write what a figure shows above it, over its legend if it has one, unless it is titled."""
    text = _filled(figure, text, characters=15)
    if figure.legends:
        legend = figure.legends[0]
        if not legend.get_title().get_text():
            legend.set_title(text)
    elif not figure.get_suptitle():
        figure.suptitle(text)


def note(figure: Figure, text: str) -> None:
    """Write below a figure what its marks are and which direction is better."""
    figure.supxlabel(_filled(figure, text, characters=20), fontsize=6.5, color="#444444")


def _filled(figure: Figure, text: str, characters: int) -> str:
    """The text in lines as wide as the figure, so many characters an inch."""
    return textwrap.fill(text, int(characters * figure.get_figwidth()))


def mark_length(axes: Axes, position: float, name: str = "L") -> None:
    """A dotted line at a position of the axis, named at its upper end."""
    axes.axvline(position, color="black", linewidth=0.8, linestyle=":")
    axes.annotate(
        name,
        (position, 1),
        xytext=(2, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        fontsize=7,
    )


def one_legend(figure: FigureBase, panels: Iterable[Axes], columns: int) -> None:
    """One legend above the figure, each label once; a setting looks the same in each panel."""
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels())
    }
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def apart(wanted: Sequence[float], sizes: Sequence[float], most: float) -> np.ndarray:
    """Where names stand along an axis so that none hides another, near to where they are wanted.

    Args:
        wanted: the middle of each, ascending.
        sizes: how much room each takes.
        most: where the last one ends at most.
    """
    total = np.cumsum(sizes)
    packed = total - np.array(sizes) / 2  # where they would stand from 0 on, without gaps
    moved = np.maximum.accumulate(wanted - packed)  # by as much as the one before, or more
    return np.minimum(moved, most - total[-1:]) + packed
