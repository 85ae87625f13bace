"""Figure 4 of the paper: passkey accuracy against prompt length per method, and by length and depth."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from core.errors import InputError
from experiments import records, scales
from figures import common
from tables.benchmarks import comparable

COLUMNS = 4  # of heat maps
PANELS = 2  # of curves in a line
Group = list[dict]  # the records of one method, one a seed


def build(results: Path, scale: str) -> Figure:
    """Curves for each scaling factor, without training and fine-tuned; below, a heat map for each model that was
    fine-tuned, or for each model where none was. Means over seeds."""
    records.load(results, scale, "passkey")  # says so if there is none
    original, *states = (_groups(results, scale, state) for state in (None, False, True))
    shown = sorted({(group[0]["factor"], trained) for trained, groups in enumerate(states) for group in groups})
    if not (original or shown):
        raise InputError(f"no passkey record of {scale}'s comparison under {results}; run experiments.passkey first.")
    shown = shown or [(original[0][0]["factor"], 0)]
    mapped = original + sorted(states[True] or states[False], key=lambda group: group[0]["factor"])
    lines, rows = -(-len(shown) // PANELS), -(-len(mapped) // COLUMNS)
    heights = [0.5 + 1.9 * lines, 0.5 + 0.95 * rows]
    figure = plt.figure(figsize=(common.PAGE, sum(heights)))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights)
    panels = upper.subplots(lines, min(len(shown), PANELS), squeeze=False, sharey=True)
    for axes, (factor, trained) in zip(panels.ravel(), shown):
        curves = original + [group for group in states[trained] if group[0]["factor"] == factor]
        _curves(axes, curves, scales.get(scale).geometry.context_length, factor)
        axes.set_title(f"s = {factor:g}, {'fine-tuned' if trained else 'without training'}", loc="left")
    for axes in panels[:, 0]:
        axes.set_ylabel("accuracy")
    for axes in panels.ravel()[len(shown) :]:
        axes.set_axis_off()
    # One legend for all panels; a method looks the same in each.
    drawn = {name: bars for axes in panels.ravel() for bars, name in zip(*axes.get_legend_handles_labels())}
    upper.legend(drawn.values(), drawn.keys(), loc="outside upper center", ncols=COLUMNS)
    grid = lower.subplots(rows, min(len(mapped), COLUMNS), squeeze=False, sharex=True, sharey=True).ravel()
    for axes, group in zip(grid, mapped):
        image = _heat_map(axes, group)
    for axes in grid[len(mapped) :]:
        axes.set_axis_off()
    lower.colorbar(image, ax=list(grid), label="accuracy", ticks=[0, 0.5, 1])
    state = "methods fine-tuned, the original as it is" if states[True] else "without training"
    lower.suptitle(f"by depth, {state}", x=0.01, ha="left", fontsize=8)
    lower.supxlabel("prompt length (1024 tokens)", fontsize=8)
    lower.supylabel("depth of the key", fontsize=8)
    return figure


def _groups(results: Path, scale: str, trained: bool | None) -> list[Group]:
    """The scale's comparison, fine-tuned or not; or, for None, the model that was not extended."""
    preset = scales.get(scale)
    found = []
    for group in comparable(results, scale, "passkey", bool(trained)):
        first = group[0]
        listed = first["method"] == "clex" or (first["method"], first["options"]) in preset.comparison(first["factor"])
        if listed and (first["method"] == "original") == (trained is None):
            found.append(group)
    return found if trained is not None else found[:1]


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
    axes.set_ylim(-0.05, 1.15)
    axes.set_xlim(0)
    axes.set_xticks([row["length"] / 1024 for row in groups[0][0]["scores"]["by_length"]])
    axes.set_xlabel("prompt length (1024 tokens)")


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
