"""Figure 4 of the paper: passkey accuracy against prompt length per method, and by length and depth."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import records, scales
from figures import common
from tables.benchmarks import comparable

COLUMNS = 4  # of heat maps
Group = list[dict]  # the records of one method, one a seed


def build(results: Path, scale: str) -> Figure:
    """A panel of curves for each scaling factor; below, a heat map for each model. Means over seeds."""
    records.load(results, scale, "passkey")  # says so if there is none
    groups = _groups(results, scale)
    rows, columns = -(-len(groups) // COLUMNS), min(len(groups), COLUMNS)
    heights = [2.3, 0.5 + 0.95 * rows]
    figure = plt.figure(figsize=(common.PAGE, sum(heights)))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights)
    factors = sorted({group[0]["factor"] for group in groups if group[0]["method"] != "original"})
    panels = upper.subplots(1, len(factors), squeeze=False, sharey=True).ravel()
    for axes, factor in zip(panels, factors):
        shown = [group for group in groups if group[0]["factor"] == factor or group[0]["method"] == "original"]
        _curves(axes, shown, scales.get(scale).geometry.context_length, factor)
    panels[0].set_ylabel("accuracy")
    grid = lower.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, group in zip(grid, groups):
        image = _heat_map(axes, group)
    for axes in grid[len(groups) :]:
        axes.set_axis_off()
    lower.colorbar(image, ax=list(grid), label="accuracy", ticks=[0, 0.5, 1])
    lower.supxlabel("prompt length (1024 tokens)", fontsize=8)
    lower.supylabel("depth of the key", fontsize=8)
    return figure


def _groups(results: Path, scale: str) -> list[Group]:
    """The original and the scale's comparison: fine-tuned where there is that."""
    preset = scales.get(scale)
    untrained, trained = (comparable(results, scale, "passkey", state) for state in (False, True))
    found = [group for group in untrained if group[0]["method"] == "original"][:1]
    for group in trained or untrained:
        first = group[0]
        listed = first["method"] == "clex" or (first["method"], first["options"]) in preset.comparison(first["factor"])
        if first["method"] != "original" and listed:
            found.append(group)
    return sorted(found, key=lambda group: group[0]["factor"] if group[0]["method"] != "original" else 0)


def _curves(axes: Axes, groups: list[Group], context_length: int, factor: float) -> None:
    for index, group in enumerate(groups):
        seeds = [run["scores"]["by_length"] for run in group]
        step = 0.006 * max(row["length"] for row in seeds[0]) / 1024  # side by side, or the intervals hide each other
        length = [row["length"] / 1024 + step * (index - (len(groups) - 1) / 2) for row in seeds[0]]
        # Prompts are the same for every seed, so their intervals do not pool: the bar spans all of them.
        mean = np.mean([[row["mean"] for row in rows] for rows in seeds], axis=0)
        low = np.min([[row["low"] for row in rows] for rows in seeds], axis=0)
        high = np.max([[row["high"] for row in rows] for rows in seeds], axis=0)
        axes.errorbar(
            length,
            mean,
            yerr=[mean - low, high - mean],
            label=common.label(group[0]),
            capsize=1.5,
            elinewidth=0.6,
            marker="o",
            markersize=3,
            **common.style(group[0]),
        )
    for share, name in ((1, "L"), (factor, "L′")):
        position = context_length * share / 1024
        axes.axvline(position, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(name, (position, 1.0), xytext=(2, 6), textcoords="offset points", fontsize=7)
    tuned = any("training" in group[0] for group in groups)
    axes.set_title(f"s = {factor:g}, {'fine-tuned' if tuned else 'without training'}", loc="left")
    axes.set_ylim(-0.05, 1.15)
    axes.set_xlim(0)
    axes.set_xlabel("prompt length (1024 tokens)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.27), ncols=3)


def _heat_map(axes: Axes, group: Group):
    cells = [cell for run in group for cell in run["scores"]["by_depth"]]
    lengths = sorted({cell["length"] for cell in cells})
    depths = sorted({cell["depth"] for cell in cells})
    values = np.zeros((len(depths), len(lengths)))
    for cell in cells:  # as many of each as there are seeds
        values[depths.index(cell["depth"]), lengths.index(cell["length"])] += cell["mean"] / len(group)
    image = axes.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    axes.set_xticks(range(len(lengths)), [f"{length / 1024:g}" for length in lengths])
    axes.set_yticks(range(len(depths)), [f"{depth:g}" for depth in depths])
    run = group[0]
    axes.set_title(common.label(run) + ("" if run["method"] == "original" else f", s = {run['factor']:g}"), loc="left")
    axes.grid(visible=False)
    return image


if __name__ == "__main__":
    common.run("passkey", __doc__, "tiny", build)
