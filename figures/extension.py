"""Beyond the paper: loss against position, up to L', one line per method."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import extension
from analysis.results import Results
from analysis.rows import Comparison, in_comparison
from figures.kit import style


def build(results: Results) -> Figure:
    """A panel for each factor without training, and one for the models that were fine-tuned for it."""
    results.require("extension")
    shown = {}
    for factor in extension.measured_factors(results):
        for rows in extension.parts(results, factor):
            state = "fine-tuned" if rows.rows[0].trained else "without training"
            shown[f"{state}, s = {factor:g}"] = rows.only(in_comparison(results.scale))
    width = style.PAGE if len(shown) > 1 else style.COLUMN
    figure, panels = plt.subplots(1, len(shown), figsize=(width, 2.6), squeeze=False)
    drawn = style.styles(row.setting for rows in shown.values() for row in rows.rows)
    for axes, (title, rows) in zip(panels[0], shown.items()):
        _draw(axes, rows, drawn)
        axes.set_title(title, loc="left")
        positions(axes, results.scale.context_length, rows.first["length"])
    panels[0, 0].set_ylabel("loss (nats per token)")
    style.one_legend(figure, panels[0], 4 if len(shown) > 1 else 2)
    return figure


def _draw(axes: Axes, rows: Comparison, drawn: dict) -> None:
    for row in rows.rows:
        position, loss = extension.buckets(row.first)
        look = style.line(drawn[row.setting])
        axes.plot(position / 1024, loss["mean"], label=row.setting.name, **look)
        axes.fill_between(position / 1024, loss["low"], loss["high"], color=look["color"], alpha=0.12, linewidth=0)


def positions(axes: Axes, trained: int, length: int) -> None:
    """Positions up to `length` along the axis, in units of 1,024, and the training length as a line."""
    style.mark_length(axes, trained / 1024)
    axes.set_xlabel("position (1024 tokens)")
    step = 2 ** max(round(np.log2(length / 1024 / 8)), -3)
    axes.set_xticks(np.arange(0, length / 1024 + step / 2, step))
    axes.set_xlim(0, length / 1024)
