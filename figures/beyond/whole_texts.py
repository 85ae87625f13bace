"""Loss against position, whole books.

Beyond the paper. One line per method. Left: the loss by position, in windows of L' over whole books. Right: the same
minus YaRN's; a line above zero has more loss than YaRN. Right of the dotted line are positions that the model never saw
in pre-training. Bands are 95 % intervals.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import perplexity_windows
from analysis.beyond import whole_texts
from analysis.comparison import in_comparison
from analysis.results import NotMeasured, Results
from analysis.settings import STATES
from core import rope
from figures.beyond.loss_by_position import positions
from figures.kit import style


def build(results: Results) -> Figure:
    """A row of panels for each factor and state: without training, fine-tuned.

    Raises:
        NotMeasured: no record of experiments.perplexity of whole texts by position.
    """
    shown = {
        f"{state}, s = {factor:g}": rows
        for factor in whole_texts.measured_factors(results)
        for trained, state in STATES
        if (rows := whole_texts.runs(results, trained, factor))
    }
    if not shown:
        raise NotMeasured(
            f"no record of whole texts under {results.folder / results.model.name}; "
            f"make one with `{results.command('perplexity', '--by-position --tokens all')}`."
        )
    figure, panels = plt.subplots(len(shown), 2, figsize=(style.PAGE, 0.4 + 2.2 * len(shown)), squeeze=False)
    listed = in_comparison(results.model)
    drawn = style.styles(row.setting for rows in shown.values() for row in rows.only(listed).rows)
    for line, (title, rows) in zip(panels, shown.items()):
        line[0].set_ylabel("loss (nats per token)")
        line[1].set_ylabel(f"difference to {rope.METHODS[rope.RIVAL].title}")
        rival = rows.find(rope.RIVAL, {})
        for row in rows.only(listed).rows:
            _draw(line[0], perplexity_windows.losses(row), row, drawn)
            if rival:
                _draw(line[1], perplexity_windows.differences(row, rival), row, drawn)
        style.compress(line[1])
        for axes in line:
            axes.set_title(title, loc="left")
            positions(axes, results.model.context_length, max(rows.first["lengths"]))
    style.one_legend(figure, panels[:, 0], 4)
    return figure


def _draw(axes: Axes, values: perplexity_windows.ByText, row, drawn: dict) -> None:
    """The mean over texts of losses by text, with its interval if it has one."""
    buckets = next(iter(values.values())).shape[2]
    scores = [perplexity_windows.average(values, slice(bucket, bucket + 1)) for bucket in range(buckets)]
    position = (np.arange(len(scores)) + 0.5) * row.first["bucket"] / 1024
    look = style.line(drawn[row.setting])
    axes.plot(position, [score.mean for score in scores], label=row.setting.name, **look)
    low, high = zip(*(score.ends for score in scores))
    axes.fill_between(position, low, high, color=look["color"], alpha=0.12, linewidth=0)
