"""Loss against position, beginnings of books.

Beyond the paper. Right of the dotted line are positions that the model never saw in pre-training. A method that extends
the model keeps its line low there. Bands are 95 % intervals. In panels of differences, a line above zero has more loss
than YaRN, and a line below zero has less; their axis is compressed away from zero.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import learned, loss_by_position
from analysis.comparison import Comparison, Row, in_comparison
from analysis.results import Results
from core import rope
from figures.kit import style

RIVAL = rope.METHODS[rope.RIVAL].title


def build(results: Results) -> Figure:
    """A panel for each factor without training, and one for the models that were fine-tuned for it."""
    results.require("loss_by_position")
    shown = {}
    for factor in loss_by_position.measured_factors(results):
        for rows in loss_by_position.parts(results, factor):
            state = "fine-tuned" if rows.rows[0].trained else "without training"
            shown[f"{state}, s = {factor:g}"] = rows.only(in_comparison(results.model))
    drawn = style.styles(row.setting for rows in shown.values() for row in rows.rows)
    rivals = {title: rows.find(rope.RIVAL, {}) for title, rows in shown.items()}
    others = {title: rest for title, rows in shown.items() if (rest := _others(rows)) and rivals[title]}
    parts = [part for part in (shown, others) if part]
    width = style.PAGE if len(shown) > 1 else style.COLUMN
    figure = plt.figure(figsize=(width, 2.8 * len(parts)))
    for place, part in zip(np.atleast_1d(figure.subfigures(len(parts), 1)), parts):
        panels = place.subplots(1, len(part), squeeze=False)[0]
        for axes, (title, rows) in zip(panels, part.items()):
            if part is shown:
                _draw(axes, rows.only(_in_paper), drawn)
            else:
                _draw_differences(axes, rows, rivals[title], drawn)
            axes.set_title(title, loc="left")
            positions(axes, results.model.context_length, rows.first["length"])
        panels[0].set_ylabel("loss (nats per token)" if part is shown else f"loss minus {RIVAL}'s")
        style.one_legend(place, panels, 4 if len(shown) > 1 else 2)
    return figure


def _in_paper(row: Row) -> bool:
    """What the paper compares, and the two that its own method is most like."""
    setting = row.setting
    known = rope.METHODS.get(setting.method)
    most_like = setting.method in (None, rope.ORIGINAL, "ntk", "dprope-significant")
    return (most_like or (known is not None and known.published)) and setting.plain("n_hat")


def _others(rows: Comparison) -> Comparison:
    """The rest, but for factors that were learned, which have a figure of their own."""
    return rows.only(lambda row: not _in_paper(row) and not learned.start_of(row.setting))


def _draw(axes: Axes, rows: Comparison, drawn: dict) -> None:
    for row in rows.rows:
        position, loss = loss_by_position.buckets(row.first)
        look = style.line(drawn[row.setting])
        axes.plot(position / 1024, loss["mean"], label=row.setting.name, **look)
        axes.fill_between(position / 1024, loss["low"], loss["high"], color=look["color"], alpha=0.12, linewidth=0)


def _draw_differences(axes: Axes, rows: Comparison, rival: Row, drawn: dict) -> None:
    """Without intervals, of which so many would hide the lines; those of the means are in the table."""
    position, reference = loss_by_position.buckets(rival.first)
    axes.axhline(0, label=RIVAL, **style.line(drawn[rival.setting]))
    for row in rows.rows:
        gap = loss_by_position.buckets(row.first)[1]["mean"] - reference["mean"]
        axes.plot(position / 1024, gap, label=row.setting.name, **style.line(drawn[row.setting]))
    style.compress(axes)  # some fail altogether


def positions(axes: Axes, trained: int, length: int) -> None:
    """Positions up to `length` along the axis, in units of 1,024, and the training length as a line."""
    style.mark_length(axes, trained / 1024)
    axes.set_xlabel("position (1024 tokens)")
    step = 2 ** max(round(np.log2(length / 1024 / 8)), -3)
    axes.set_xticks(np.arange(0, length / 1024 + step / 2, step))
    axes.set_xlim(0, length / 1024)
