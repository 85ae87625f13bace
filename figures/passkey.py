"""Figure 4 of the paper: passkey accuracy against prompt length per method, and by length and depth."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import records, scales
from figures import common


def build(results: Path, scale: str) -> Figure:
    order = list(common.METHOD_NAMES)
    runs = sorted(
        (run for run in records.load(results, scale, "passkey") if run["method"]),
        key=lambda run: (run["factor"], order.index(run["method"]), run["options"].get("n_hat") or 0),
    )
    rows = -(-len(runs) // 3)
    figure = plt.figure(figsize=(common.PAGE, 2.3 + 1.25 * rows))
    upper, lower = figure.subfigures(2, 1, height_ratios=[2.3, 1.25 * rows])
    _curves(upper.subplots(), runs, scale)
    grid = lower.subplots(rows, min(len(runs), 3), squeeze=False, sharex=True, sharey=True).ravel()
    for axes, run in zip(grid, runs):
        image = _heat_map(axes, run)
    for axes in grid[len(runs) :]:
        axes.set_axis_off()
    lower.colorbar(image, ax=list(grid), label="accuracy", ticks=[0, 0.5, 1])
    lower.supxlabel("prompt length (1024 tokens)", fontsize=8)
    lower.supylabel("depth of the key", fontsize=8)
    return figure


def _label(run: dict) -> str:
    name = common.METHOD_NAMES[run["method"]]
    if run["method"] == "dprope":
        n_hat = run["options"].get("n_hat")
        name += " (t = 0)" if n_hat is None else f" (n̂ = {n_hat})"
    return name if run["method"] == "original" else f"{name}, s = {run['factor']:g}"


def _curves(axes: Axes, runs: list[dict], scale: str) -> None:
    for index, run in enumerate(runs):
        found = run["scores"]["by_length"]
        step = 0.01 * max(row["length"] for row in found) / 1024  # side by side, or the intervals hide each other
        length = [row["length"] / 1024 + step * (index - (len(runs) - 1) / 2) for row in found]
        mean, low, high = (np.array([row[end] for row in found]) for end in ("mean", "low", "high"))
        style = dict(common.STYLES[run["method"]])
        if run["options"].get("n_hat"):
            style |= {"color": "#56B4E9", "linestyle": (0, (4, 1))}
        axes.errorbar(
            length,
            mean,
            yerr=[mean - low, high - mean],
            label=_label(run),
            capsize=2,
            elinewidth=0.8,
            marker="o",
            markersize=3,
            **style,
        )
    geometry = scales.get(scale).geometry
    for share, name in ((1, "L"), (runs[0]["factor"], "L′")):
        position = geometry.context_length * share / 1024
        axes.axvline(position, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(name, (position, 1.0), xytext=(2, 6), textcoords="offset points", fontsize=7)
    axes.set_ylim(-0.05, 1.12)
    axes.set_xlim(0)
    axes.set_xlabel("prompt length (1024 tokens)")
    axes.set_ylabel("accuracy")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _heat_map(axes: Axes, run: dict):
    cells = run["scores"]["by_depth"]
    lengths = sorted({cell["length"] for cell in cells})
    depths = sorted({cell["depth"] for cell in cells})
    values = np.full((len(depths), len(lengths)), np.nan)
    for cell in cells:
        values[depths.index(cell["depth"]), lengths.index(cell["length"])] = cell["mean"]
    image = axes.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    axes.set_xticks(range(len(lengths)), [f"{length / 1024:g}" for length in lengths])
    axes.set_yticks(range(len(depths)), [f"{depth:g}" for depth in depths])
    axes.set_title(_label(run), loc="left")
    axes.grid(visible=False)
    return image


if __name__ == "__main__":
    common.run("passkey", __doc__, "tiny", build)
