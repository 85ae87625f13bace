"""What curves on books share: their panels, where an axis ends, and names at their ends."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import books
from analysis.comparison import Comparison
from analysis.scores import counted
from figures.kit import style

INTERVALS = "95 % intervals over texts (five or more) and seeds (two or more)"

_NAME = 17  # characters of a line of a curve's name
_TITLE = 44  # of a line of a panel's title
_LINE = 11  # points; a panel gets lower when the figure's title and note take their room


def panels(count: int, height: float, rest: float) -> tuple[Figure, np.ndarray]:
    """A figure of so many panels in two columns, or in one, and its axes [rows, columns].

    Args:
        height: of a row of panels, in inches.
        rest: the height of all else.
    """
    columns = min(2, count)
    rows = -(-count // columns)
    size = (style.PAGE if columns > 1 else style.PAGE * 0.62, height * rows + rest)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axes in grid.ravel()[count:]:
        axes.set_axis_off()
    return figure, grid


def title(rows: Comparison) -> str:
    """Of the panel of rows on the same books: their state, s, and how many books."""
    texts = counted(len({*books.texts(rows.first)}), "text")
    read = f"s = {rows.rows[0].setting.factor:g}, {texts}"
    one_line = f"{state(rows)}, {read}"
    return one_line if len(one_line) <= _TITLE else f"{state(rows)},\n{read}"


def state(rows: Comparison) -> str:
    """Of rows that are compared; and how many sequences of each book fine-tunes took, which tells
    their rounds apart."""
    row = rows.rows[0]
    per_book = row.fine_tune.get("per_book")
    return row.state + (f", {counted(per_book, 'sequence')} of each book" if per_book else "")


def ticks(length: float) -> np.ndarray:
    """Of an axis of positions in 1,024 tokens: a power of two apart, so that L is one."""
    step = 2 ** max(round(np.log2(length / 4)), -3)
    return np.arange(0, length + step / 2, step)


def axis_end(means: Iterable[float]) -> float:
    """Where a linear axis ends so that half of the means other than 0 are in its inner half. Of two
    in the middle, one of which is ten times as far out as the other, the nearer one counts."""
    sizes = sorted(abs(mean) for mean in means if mean) or [0.01]
    near, far = sizes[(len(sizes) - 1) // 2], sizes[len(sizes) // 2]
    return 2 * near if far > 10 * near else near + far


def off_scale(axes: Axes, names: Sequence[str]) -> None:
    """Say above a panel which curves lie beyond its axis, and where."""
    if names:
        names = [_unbroken(name) for name in names]
        text = textwrap.fill(f"off the scale: {', '.join(names)}", 56)
        axes.set_title(f"{axes.get_title('left')}\n{text}", loc="left")


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def name_curves(axes: Axes, ends: Mapping[str, tuple[float, float, str]]) -> None:
    """Name curves at their right end, each in its colour; names do not hide each other.

    Args:
        ends: the last point of each curve and its colour, by its name.
    """
    axes.autoscale_view()
    height = 72 * axes.get_window_extent().height / axes.figure.dpi
    heights = {
        name: (axes.transScale + axes.transLimits).transform(end)[1]
        for name, (*end, _) in ends.items()
    }
    names = sorted(ends, key=heights.get)
    texts = [
        textwrap.fill(name.replace(" = ", _unbroken(" = ")).replace("× ", _unbroken("× ")), _NAME)
        for name in names
    ]
    # of its lines, as a share of the axes' height
    sizes = [_LINE * (1 + text.count("\n")) / height for text in texts]
    most = 1 + _LINE / height / 2  # a line at the axes' edge is clear of the title
    places = style.apart([heights[name] for name in names], sizes, most)
    for name, text, place in zip(names, texts, places):
        *end, colour = ends[name]
        line = {"arrowstyle": "-", "linewidth": 0.4, "relpos": (0, 0.5)}
        line |= {"shrinkA": 2, "shrinkB": 0, "patchA": None}  # to clip a line takes long
        look = {"va": "center", "fontsize": 6.5, "annotation_clip": False}
        axes.annotate(
            text,
            end,
            (1.07, place),
            textcoords="axes fraction",
            color=colour,
            arrowprops=line | {"color": colour},
            **look,
        )
