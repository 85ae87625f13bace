"""Keys in books, by their distance to the question."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import books
from analysis.beyond import needles as keys
from analysis.comparison import Comparison, Row, own_methods
from analysis.results import Results
from core import PROPOSED, rope
from figures.beyond import curves
from figures.kit import style


def needles(results: Results) -> Figure:
    """Keys hidden in books: nats a key, by distance.

    Beyond the paper. “Last” reads the last L tokens alone and can only guess beyond. A cost
    above a guess means that another number is likelier. At most seven settings are drawn; the
    table of keys has all, with intervals.

    A panel for each set of records that can be compared, and none for one alone if there are more.

    Raises:
        NotMeasured: there is no record.
    """
    results.require("needles")
    sets = books.sets(results, "needles")
    shown = [rows for rows in sets if len(rows.rows) > 1] or sets
    chosen = [_chosen(results, rows) for rows in shown]
    drawn = style.styles(row.setting for rows in chosen for row in rows)
    figure, grid = curves.panels(len(shown), 2.4, 0.7)
    for axes, rows, compared in zip(grid.ravel(), chosen, shown):
        _panel(axes, rows, drawn, results.context_length)
        axes.set_title(curves.title(compared), loc="left")
    for axes in grid[:, 0]:
        axes.set_ylabel("nats a key (less is better)")
    style.note(
        figure,
        "A mark: −log of the probability of a key's five digits, mean over texts and seeds. "
        "Dashed: a blind guess. Right of L: farther than in any text of pre-training. “last”: what "
        "lies further back is not read.",
    )
    return figure


def _chosen(results: Results, rows: Comparison) -> list[Row]:
    """At most MOST rows: the paper's methods, the model that is not extended, a user's own; then
    those that cost least."""
    n_hat = results.n_hat.get(rows.rows[0].setting.factor)
    first = [(rope.BASELINE, {}), (PROPOSED, {"n_hat": n_hat} if n_hat else {}), (PROPOSED, {})]
    first += [(name, {}) for name in own_methods(results)]
    found = [rows.find(method, options) for method, options in first]
    found += [row for row in rows.rows if row.setting.last]
    by_nats = sorted(rows.rows, key=lambda row: keys.by_distance(row.first).mean())
    wanted = {row.setting: row for row in (*found, *by_nats) if row}
    return [
        wanted[setting] for setting in sorted([*wanted][: style.MOST], key=lambda one: one.order)
    ]


def _panel(axes: Axes, rows: list[Row], drawn: dict, context_length: int) -> None:
    ends = {}
    for row in rows:
        far = keys.distances(row.first) / 1024
        nats = np.mean([keys.by_distance(run) for run in row.runs], axis=0)
        look = style.line(drawn[row.setting])
        axes.plot(far, nats, label=row.setting.name, marker=".", markersize=3, **look)
        ends[row.setting.name] = (far[0], nats[0], look["color"])
    axes.axhline(keys.GUESS, color="black", linewidth=0.6, linestyle="--")
    look = {"textcoords": "offset points", "fontsize": 6.5}
    axes.annotate("a guess", (0, keys.GUESS), xytext=(2, 3), **look)
    style.mark_length(axes, context_length / 1024)
    axes.set_xlabel("tokens between the key and the question (1024)")
    longest = math.ceil(max(far))
    axes.set_xticks(curves.ticks(longest))
    axes.set_xlim(0, longest)
    axes.set_ylim(bottom=0)
    curves.name_curves(axes, ends)
