"""Loss against position, beginnings of books.

Beyond the paper. Right of the dotted line are positions that the model never saw in pre-training. A method that extends
the model keeps its line low there. A state's first panel has the losses of the methods that the paper compares, means
over the books. Its other panels have DPRoPE's settings and other methods as differences: above zero is more loss than
YaRN, below zero less, on an axis that is compressed away from zero.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import learned, loss_by_position
from analysis.comparison import in_comparison
from analysis.results import Results
from analysis.settings import Setting
from core import rope
from figures.kit import style

BASELINE = rope.METHODS[rope.BASELINE].title

Curves = Mapping[Setting, tuple[np.ndarray, np.ndarray]]  # positions and losses, float64 [positions] each


def build(results: Results) -> Figure:
    """Panels for each factor without training, and for the models that were fine-tuned for it."""
    results.require("loss_by_position")
    listed = in_comparison(results.model)
    shown: dict[str, Curves] = {}
    for factor in loss_by_position.measured_factors(results):
        for rows in loss_by_position.parts(results, factor):
            state = "fine-tuned" if rows.rows[0].trained else "without training"
            chosen = rows.only(lambda row: listed(row) and not learned.start_of(row.setting)).rows
            curves = {row.setting: loss_by_position.buckets(row.first) for row in chosen}
            count = len({*loss_by_position.texts(rows.first)})
            shown[f"{state}, s = {factor:g}, {count} text{'s' * (count > 1)}"] = {
                setting: (position, loss["mean"]) for setting, (position, loss) in curves.items()
            }
    return draw(shown, results.model.context_length)


def draw(shown: Mapping[str, Curves], trained: int) -> Figure:
    """Small multiples of losses by position: for each state its panels of at most five curves.

    Args:
        shown: curves by the state's title.
        trained: L, in tokens.
    """
    panels = {title: style.panels(curves) for title, curves in shown.items()}
    drawn = style.styles(*(panel for own in panels.values() for panel in own))
    figure = plt.figure(figsize=(style.PAGE, 1.9 * sum(map(style.lines_of, panels.values()))))
    for title, placed in style.small_multiples(figure, panels).items():
        curves = shown[title]
        rival = next((setting for setting in curves if setting.method == rope.BASELINE and setting.plain()), None)
        for index, (axes, panel) in enumerate(zip(placed, panels[title])):
            against = rival if index else None
            _panel(axes, {setting: curves[setting] for setting in panel}, drawn, against, trained)
            axes.set_ylabel(f"loss minus {BASELINE}'s" if against else "loss (nats per token)")
    return figure


def _panel(axes: Axes, curves: Curves, drawn: dict, against: Setting | None, trained: int) -> None:
    ends, colours = {}, {}
    for setting, (position, loss) in curves.items():
        values = loss - curves[against][1] if against else loss
        axes.plot(position / 1024, values, label=setting.name, **style.line(drawn[setting]))
        ends[setting.name], colours[setting.name] = (position[-1] / 1024, values[-1]), drawn[setting][0]
    if against:
        style.compress(axes)  # some fail altogether
    length = max(position[-1] + position[0] for position, _ in curves.values())
    style.mark_length(axes, trained / 1024)
    axes.set_xlabel("position (1024 tokens)")
    step = 2 ** max(round(np.log2(length / 1024 / 4)), -3)
    axes.set_xticks(np.arange(0, length / 1024 + step / 2, step))
    axes.set_xlim(0, length / 1024)
    style.name_curves(axes, ends, colours)
