"""Loss against position over the whole of long texts, and its difference to YaRN's: one line per method, L marked."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from experiments import scales
from figures import common, extension
from tables import whole_texts
from tables.benchmarks import STATES

TICKS = (-0.1, -0.05, 0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)  # linear to 0.1, then logarithmic


def build(results: Path, scale: str) -> Figure:
    """A row of panels without training and one fine-tuned; a scale without records says so."""
    parts = {state: whole_texts.runs(results, scale, trained) for trained, state in STATES}
    shown = {state: made for state, made in parts.items() if made} or {STATES[0][1]: []}
    figure, panels = plt.subplots(len(shown), 2, figsize=(common.PAGE, 0.4 + 2.2 * len(shown)), squeeze=False)
    trained = scales.get(scale).geometry.context_length
    for row, (state, made) in zip(panels, shown.items()):
        row[0].set_ylabel("loss (nats per token)")
        row[1].set_ylabel("difference to YaRN")
        for axes in row:
            axes.set_title(state, loc="left")
        if not made:
            row[0].annotate("no record at this scale", (0.5, 0.5), xycoords="axes fraction", ha="center")
            continue
        yarn = whole_texts.reference(made)
        for run in made:
            if (run["method"], run["options"]) in [("clex", {}), *scales.get(scale).comparison(run["factor"])]:
                _draw(row[0], run, whole_texts.losses(run))
                if yarn:
                    _draw(row[1], run, whole_texts.losses(run) - whole_texts.losses(yarn))
        row[1].set_yscale("symlog", linthresh=0.1)
        row[1].yaxis.set_major_locator(FixedLocator(TICKS))
        row[1].yaxis.set_major_formatter("{x:g}")
        for axes in row:
            extension.mark(axes, trained, max(made[0]["lengths"]))
    # One legend for all panels; a method looks the same in each.
    lines = {line.get_label(): line for axes in panels[:, 0] for line in axes.get_legend_handles_labels()[0]}
    if lines:
        figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=4)
    return figure


def _draw(axes: Axes, run: dict, values: np.ndarray) -> None:
    """The mean over windows [windows, buckets] with its interval."""
    scores = [whole_texts.average(values[:, [bucket]]) for bucket in range(values.shape[1])]
    position = (np.arange(len(scores)) + 0.5) * run["bucket"] / 1024
    style = common.style(run)
    axes.plot(position, [score["mean"] for score in scores], label=common.label(run), **style)
    low, high = ([score[end] for score in scores] for end in ("low", "high"))
    axes.fill_between(position, low, high, color=style["color"], alpha=0.12, linewidth=0)


if __name__ == "__main__":
    common.run("whole_texts", __doc__, "smollm2", build)
