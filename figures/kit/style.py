"""What every figure shares: sizes, type, and how a setting is drawn."""

import itertools
import textwrap
from collections.abc import Iterable, Mapping
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

# For what a registration leaves out: colours far from each other, from black, from the baseline's
# and from the registered solid line, to colour-blind eyes too, and dashes unlike those that are
# registered.
_COLOURS = ("#882255", "#332288", "#77AA66", "#997700", "#56B4E9", "#888888")
_DASHES = ("-", (0, (2, 2)), (0, (9, 2, 3, 2)), (0, (1, 3)), (0, (12, 2, 2, 2, 2, 2)))
AS_IT_IS = ("#000000", "-")  # a checkpoint that no method here extended
_NAME = 17  # characters of a line of a curve's name


def styles(*panels: Iterable[Setting]) -> dict[Setting, rope.Style]:
    """(colour, line style) of each setting of a figure, the same in all its panels.

    A method is drawn as its registration says, its settings with other options as the further
    styles there, those of each scaling factor alike: n̂ differs between factors. What they leave
    out takes the next free pair of a colour and a dash, and so does a setting whose colour is that
    of another of its panel, or of another setting of its method. Where more settings share a panel
    than there are colours, they differ by dashes alone.
    """
    free = [style[::-1] for style in itertools.product(_DASHES, _COLOURS)]  # thirty pairs
    lists = [list(panel) for panel in panels]
    ordered = sorted({one for panel in lists for one in panel}, key=_order)
    roles = {setting: _role(setting, ordered) for setting in ordered}
    together = [{roles[one] for one in panel} for panel in lists]
    looks: dict[tuple, rope.Style] = {(None, 0, ()): AS_IT_IS}
    for role in roles.values():
        if role in looks:
            continue
        others = {
            other
            for other in looks
            if other[0] == role[0] or any({role, other} <= panel for panel in together)
        }
        used = {looks[other][0] for other in others}
        name, place, _ = role
        registered = rope.METHODS[name].styles[place : place + 1] if name in rope.METHODS else ()
        wanted = [*registered, *(style for style in free if style not in looks.values())]
        wanted = wanted or free  # a figure of more than thirty
        looks[role] = next((style for style in wanted if style[0] not in used), wanted[0])
    return {setting: looks[roles[setting]] for setting in ordered}


def _role(setting: Setting, among: list[Setting]) -> tuple:
    """What looks alike at each scaling factor: the method, the setting's place among those of its
    method with options, and the files that it names."""
    if setting.plain():
        return setting.method, 0, setting.options
    alike = [one for one in among if (one.method, one.factor) == (setting.method, setting.factor)]
    varied = list(dict.fromkeys(one.options for one in alike if not one.plain()))
    return setting.method, 1 + varied.index(setting.options), ()


def _order(setting: Setting) -> tuple:
    return *setting.order, str(setting.method)


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
    to_fraction = axes.transScale + axes.transLimits
    names = sorted(ends, key=lambda name: to_fraction.transform(ends[name])[1])
    texts = [
        textwrap.fill(name.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"), _NAME)
        for name in names
    ]
    sizes = [
        8.5 * (1 + text.count("\n")) / height for text in texts
    ]  # of its lines, as a share of the axes' height
    wanted = [to_fraction.transform(ends[name])[1] for name in names]
    for index in range(1, len(names)):
        apart = (sizes[index - 1] + sizes[index]) / 2
        wanted[index] = max(wanted[index], wanted[index - 1] + apart)
    top = 1 + sizes[-1] / 2 if sizes else 1
    for index in reversed(range(len(names))):
        wanted[index] = min(wanted[index], top - sizes[index] / 2)
        top = wanted[index] - sizes[index] / 2
    for name, text, y in zip(names, texts, wanted):
        axes.annotate(
            text,
            ends[name],
            (1.07, y),
            textcoords="axes fraction",
            va="center",
            fontsize=6.5,
            color=colours[name],
            arrowprops={
                "arrowstyle": "-",
                "color": colours[name],
                "linewidth": 0.4,
                "relpos": (0, 0.5),
                "shrinkA": 0,
            },
            annotation_clip=False,
        )


def one_legend(figure, panels: Iterable[Axes], columns: int) -> None:
    """One legend above the figure, each label once; a setting looks the same in each panel."""
    handles = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels())
    }
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)
