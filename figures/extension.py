"""Beyond the paper: loss against position, up to L', one line per method; the paper's methods above, others below."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import extension
from analysis.results import Results
from analysis.rows import Comparison, Row, Setting, in_comparison
from core import rope
from figures.kit import style


def build(results: Results) -> Figure:
    """A panel for each factor without training, and one for the models that were fine-tuned for it."""
    results.require("extension")
    shown = {}
    for factor in extension.measured_factors(results):
        for rows in extension.parts(results, factor):
            state = "fine-tuned" if rows.rows[0].trained else "without training"
            shown[f"{state}, s = {factor:g}"] = rows.only(in_comparison(results.scale))
    drawn = style.styles(row.setting for rows in shown.values() for row in rows.rows)
    parts = [shown, {title: rows for title, all_rows in shown.items() if (rows := _others(all_rows))}]
    parts = [part for part in parts if part]
    width = style.PAGE if len(shown) > 1 else style.COLUMN
    figure = plt.figure(figsize=(width, 2.8 * len(parts)))
    for place, part in zip(np.atleast_1d(figure.subfigures(len(parts), 1)), parts):
        panels = place.subplots(1, len(shown), squeeze=False)[0]
        for axes in panels[len(part) :]:
            axes.set_visible(False)
        for axes, (title, rows) in zip(panels, part.items()):
            if part is shown:
                _draw(axes, rows.only(_in_paper), drawn, intervals=True)
            else:  # so many intervals would hide the lines
                _draw(axes, rows, drawn, intervals=False)
            axes.set_title(title, loc="left")
            positions(axes, results.scale.context_length, rows.first["length"])
        panels[0].set_ylabel("loss (nats per token)")
        style.one_legend(place, panels, 4 if len(shown) > 1 else 2)
    return figure


def _in_paper(row: Row) -> bool:
    """What the paper compares, and the two that its own method is most like."""
    setting = row.setting
    known = rope.METHODS.get(setting.method)
    listed = setting.method in (None, rope.ORIGINAL, rope.NTK, rope.OURS_BY_NOISE) or known is not None and known.published
    return listed and setting.plain("n_hat")


def _others(rows: Comparison) -> Comparison:
    """The rest, beside the rival; nothing where there is no rest."""
    rest = [row for row in rows.rows if not _in_paper(row) and not row.setting.learned]
    rival = [row for row in rows.rows if row.setting == Setting(rope.RIVAL, (), row.setting.factor)]
    return Comparison(tuple([*rival, *rest]) if rest else ())


def _draw(axes: Axes, rows: Comparison, drawn: dict, intervals: bool) -> None:
    for row in rows.rows:
        position, loss = extension.buckets(row.first)
        look = style.line(drawn[row.setting])
        axes.plot(position / 1024, loss["mean"], label=row.setting.name, **look)
        if intervals:
            axes.fill_between(position / 1024, loss["low"], loss["high"], color=look["color"], alpha=0.12, linewidth=0)


def positions(axes: Axes, trained: int, length: int) -> None:
    """Positions up to `length` along the axis, in units of 1,024, and the training length as a line."""
    style.mark_length(axes, trained / 1024)
    axes.set_xlabel("position (1024 tokens)")
    step = 2 ** max(round(np.log2(length / 1024 / 8)), -3)
    axes.set_xticks(np.arange(0, length / 1024 + step / 2, step))
    axes.set_xlim(0, length / 1024)
