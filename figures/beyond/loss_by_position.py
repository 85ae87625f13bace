"""Loss by position, as curves."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import learned
from analysis.beyond import loss_by_position as losses
from analysis.comparison import Comparison, Row, own_methods
from analysis.results import Results
from analysis.scores import counted
from core import rope
from figures.beyond import curves
from figures.kit import style

BASELINE = rope.METHODS[rope.BASELINE].title
BEST = 5
COLUMNS = 2


def loss_by_position(results: Results) -> Figure:
    """Loss against position, beginnings of books: the five best settings.

    Beyond the paper. A panel has the five settings of the least loss beyond L, without ablations
    and what was learned, and a user's own methods, as differences from YaRN's loss at the same
    positions: above zero is more loss than YaRN, below zero less. Losses are means over the books.
    An axis that reaches farther than 0.1 is logarithmic from there on. Right of the dotted line are
    positions that the model never saw in pre-training. The table of losses by position has all
    settings.

    A panel for each comparable set of records that has the baseline.

    Raises:
        NotMeasured: there is no such set.
    """
    shown = {
        _title(rows, factor): rows
        for factor in losses.measured_factors(results)
        for rows in losses.sets(results, factor)
        if _baseline(rows) and len(rows.rows) > 1
    }
    if not shown:
        raise results.lacks(
            f"losses by position of {BASELINE} and another method",
            "loss_by_position",
            "--method yarn",
        )
    best = {title: best_rows(results, rows) for title, rows in shown.items()}
    drawn = style.styles(row.setting for rows in best.values() for row in rows)
    lines = -(-len(shown) // COLUMNS)
    figure, grid = plt.subplots(lines, COLUMNS, figsize=(style.PAGE, 1.9 * lines), squeeze=False)
    for axes in grid.ravel()[len(shown) :]:
        axes.set_axis_off()
    for axes, (title, rows) in zip(grid.ravel(), shown.items()):
        _panel(axes, best[title], _baseline(rows), drawn, results.context_length)
        axes.set_title(title, loc="left")
    for axes in grid[:, 0]:
        axes.set_ylabel(f"loss minus {BASELINE}'s\n(nats per token)")
    return figure


def best_rows(results: Results, rows: Comparison) -> list[Row]:
    """The five settings of the least loss beyond L, the least first, and then a user's own methods;
    without ablations and what was learned."""
    by_loss = sorted(learned.methods(results, rows), key=lambda row: losses.level(row).mean)
    users = own_methods(results)
    return by_loss[:BEST] + [row for row in by_loss[BEST:] if row.setting.method in users]


def _baseline(rows: Comparison) -> Row | None:
    return rows.find(rope.BASELINE, {})


def _title(rows: Comparison, factor: float) -> str:
    state = "fine-tuned" if rows.rows[0].trained else "without training"
    texts = len({*losses.texts(rows.first)})
    return f"{state}, s = {factor:g}, {counted(texts, 'text')}"


def _panel(axes: Axes, rows: list[Row], baseline: Row, drawn: dict, context_length: int) -> None:
    _, reference = losses.curve(baseline.first)
    ends = {}
    colours = {}
    for row in rows:
        position, loss = losses.curve(row.first)
        values = loss - reference
        name = row.setting.name
        axes.plot(position / 1024, values, label=name, **style.line(drawn[row.setting]))
        ends[name] = (position[-1] / 1024, values[-1])
        colours[name] = drawn[row.setting][0]
    axes.axhline(0, color="black", linewidth=0.4)
    curves.compress(axes)  # a method that learned little strays far
    length = (position[-1] + position[0]) / 1024
    style.mark_length(axes, context_length / 1024)
    axes.set_xlabel("position (1024 tokens)")
    step = 2 ** max(round(np.log2(length / 4)), -3)
    axes.set_xticks(np.arange(0, length + step / 2, step))
    axes.set_xlim(0, length)
    curves.name_curves(axes, ends, colours)
