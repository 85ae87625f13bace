"""Where heads that look k tokens back look, under each method.

Beyond the paper. A square is one head, named layer.head, under one method. Left: how much of its attention lies k
tokens back, where the base model looks. Right: how much lies s·k tokens back, where an interpolated head looks. A
method that leaves the heads as they are repeats the first line.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from analysis.results import NotMeasured, Results
from analysis.rows import STATES, Row, compared, in_comparison
from core import rope
from figures.kit import style

PANELS = {"own": "k tokens back", "scaled": "s·k tokens back"}


def build(results: Results) -> Figure:
    """From the records of experiments.previous_token: a line of two panels for each state and factor, seeds averaged.

    Raises:
        NotMeasured: no record of the scale's comparison.
    """
    results.require("previous_token")
    shown = {title: rows for factor in _factors(results) for title, rows in _states(results, factor)}
    if not shown:
        raise NotMeasured(f"no previous_token record of {results.scale.name}'s comparison; run its suite first.")
    heights = [0.55 + 0.17 * len(rows) for rows in shown.values()]
    figure, grid = plt.subplots(
        len(shown), 2, figsize=(style.PAGE, sum(heights) + 0.2), squeeze=False, height_ratios=heights
    )
    for line, (title, rows) in zip(grid, shown.items()):
        for axes, (name, panel) in zip(line, PANELS.items()):
            image = _squares(axes, rows, name)
            axes.set_title(f"{title}: {panel}", loc="left")
        line[0].set_yticks(range(len(rows)), [row.setting.name for row in rows])
        line[1].set_yticks([])
    figure.supxlabel("head (layer.head), and its k", fontsize=8)
    figure.colorbar(image, ax=list(grid.ravel()), label="attention (%)", ticks=[0, 50, 100])
    return figure


def _factors(results: Results) -> list[float]:
    return sorted({float(run["factor"]) for run in results.records("previous_token")})


def _states(results: Results, factor: float) -> list[tuple[str, list[Row]]]:
    """The comparison's rows of a factor by state, all of the same heads; the original, not trained, heads each."""
    listed, found, plain = in_comparison(results.scale), [], []
    for trained, state in STATES:
        own = compared(results, "previous_token", trained).only(listed).rows
        own = [row for row in own if row.setting.factor == factor]
        plain = plain or [row for row in own if row.setting.method == rope.ORIGINAL]
        methods = [row for row in own if row.setting.method != rope.ORIGINAL]
        if methods:
            heads = _heads(methods[0].first)
            same = [row for row in (*plain, *methods) if all(_heads(run) == heads for run in row.runs)]
            found.append((f"{state}, s = {factor:g}", same))
    return found


def _heads(run: dict) -> list[tuple]:
    return [(head["layer"], head["head"], head["offset"]) for head in run["scores"]["heads"]]


def _squares(axes: Axes, rows: list[Row], name: str) -> AxesImage:
    """A map [methods, heads] of attention in per cent, with the numbers in it."""
    shares = [[[head[name] for head in run["scores"]["heads"]] for run in row.runs] for row in rows]
    values = np.array([np.mean(seeds, axis=0) for seeds in shares])
    image = axes.imshow(values, vmin=0, vmax=100, cmap="cividis", aspect="auto")
    for (line, column), value in np.ndenumerate(values):
        axes.text(column, line, f"{value:.0f}", ha="center", va="center", fontsize=6, color="w" if value < 50 else "k")
    heads = _heads(rows[0].first)
    axes.set_xticks(range(len(heads)), [f"{layer}.{head}\nk = {offset}" for layer, head, offset in heads])
    axes.grid(visible=False)
    return image
