"""What curves of differences of losses share: their axis, and names at their ends."""

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

_NAME = 17  # characters of a line of a curve's name


def compress(axes: Axes) -> None:
    """Draw differences of losses linearly up to 0.1 nat and logarithmically beyond, if there are
    any."""
    if max(map(abs, axes.get_ylim())) <= 0.1:
        return
    axes.set_yscale("symlog", linthresh=0.1)
    axes.yaxis.set_major_locator(
        FixedLocator((-1, -0.5, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5))
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
    sizes = [9 * (1 + text.count("\n")) / height for text in texts]
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
