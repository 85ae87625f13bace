"""Loss against position, without training and fine-tuned: one line per method, the training length marked."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import scales
from figures import common
from tables.extension import comparison, factors, fine_tuned


def build(results: Path, scale: str) -> Figure:
    """A panel for each factor without training, and one for the models that were fine-tuned for it."""
    shown = {}
    for factor in factors(results, scale):
        runs = comparison(results, scale, factor)
        shown[f"without training, s = {factor:g}"] = runs
        shown[f"fine-tuned, s = {factor:g}"] = fine_tuned(results, scale, runs[0])
    shown = {title: part for title, part in shown.items() if part}
    figure, panels = plt.subplots(
        1, len(shown), figsize=(common.PAGE if len(shown) > 1 else common.COLUMN, 2.6), squeeze=False
    )
    trained = scales.get(scale).geometry.context_length
    for axes, (title, part) in zip(panels[0], shown.items()):
        _draw(axes, part)
        mark(axes, trained, part[0]["length"])
        axes.set_title(title, loc="left")
    panels[0, 0].set_ylabel("loss (nats per token)")
    # One legend for all panels; a method looks the same in each.
    lines = {line.get_label(): line for axes in panels[0] for line in axes.get_legend_handles_labels()[0]}
    figure.legend(lines.values(), lines.keys(), loc="outside upper center", ncols=4 if len(shown) > 1 else 2)
    return figure


def _draw(axes: Axes, runs: list[dict]) -> None:
    for run in runs:
        buckets = run["buckets"]
        position = [(bucket["start"] + bucket["end"]) / 2 / 1024 for bucket in buckets]
        style = common.style(run)
        axes.plot(position, [bucket["mean"] for bucket in buckets], label=common.label(run), **style)
        low, high = ([bucket[end] for bucket in buckets] for end in ("low", "high"))
        axes.fill_between(position, low, high, color=style["color"], alpha=0.12, linewidth=0)


def mark(axes: Axes, trained: int, length: int) -> None:
    """Positions up to `length` along the axis, in units of 1,024, and the training length as a line."""
    axes.axvline(trained / 1024, color="black", linewidth=0.8, linestyle=":")
    axes.annotate(
        "L",
        (trained / 1024, 1),
        xytext=(2, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        fontsize=7,
    )
    axes.set_xlabel("position (1024 tokens)")
    axes.set_xticks(np.arange(0, length / 1024 + 1, 2 if length <= 16 * 1024 else 8))
    axes.set_xlim(0, length / 1024)


if __name__ == "__main__":
    common.run("extension", __doc__, "smollm2", build)
