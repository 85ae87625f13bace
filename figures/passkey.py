"""Figure 4: passkeys found by length, method and depth.

Curves: the share of passkeys that is found, with 95 % intervals. The paper claims 100 % for its method up to L'. Maps:
the same by the place of the key in the text; yellow is found, dark blue is missed.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.comparison import Row, compared, in_comparison
from analysis.results import NotMeasured, Results
from analysis.scores import stacked
from core import rope
from figures.kit import style

COLUMNS = 4  # of heat maps
PANELS = 2  # of curves in a line


def build(results: Results) -> Figure:
    """Curves for each scaling factor, without training and fine-tuned; below, a heat map for each model that was
    fine-tuned, or for each model where none was. Means over seeds.

    Raises:
        NotMeasured: no record of experiments.passkey.
    """
    results.require("passkey")
    listed = in_comparison(results.model)
    untrained, tuned = (compared(results, "passkey", trained).only(listed).rows for trained in (False, True))
    # The model that was not extended is the same at every factor.
    plain = [row for row in untrained if row.setting.method in (None, rope.ORIGINAL)][:1]
    states = [[row for row in rows if row.setting.method not in (None, rope.ORIGINAL)] for rows in (untrained, tuned)]
    if not (plain or states[0] or states[1]):
        raise NotMeasured(
            f"no passkey record of {results.model.name}'s comparison; make one with `{results.command('passkey')}`."
        )
    shown = sorted({(row.setting.factor, trained) for trained, rows in enumerate(states) for row in rows})
    shown = shown or [(plain[0].setting.factor, 0)]
    mapped = plain + sorted(states[True] or states[False], key=lambda row: row.setting.factor)
    lines, rows = -(-len(shown) // PANELS), -(-len(mapped) // COLUMNS)
    heights = [0.5 + 1.9 * lines, 0.5 + 0.95 * rows]
    figure = plt.figure(figsize=(style.PAGE, sum(heights)))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights)

    panels = upper.subplots(lines, min(len(shown), PANELS), squeeze=False, sharey=True)
    drawn = style.styles(row.setting for row in [*untrained, *tuned])
    for axes, (factor, trained) in zip(panels.ravel(), shown):
        curves = plain + [row for row in states[trained] if row.setting.factor == factor]
        _curves(axes, curves, drawn, results.model.context_length, factor)
        title = "fine-tuned" if trained else "without training" if factor > 1 else "as it is"
        axes.set_title(title + (f", s = {factor:g}" if factor > 1 else ""), loc="left")
    for axes in panels[:, 0]:
        axes.set_ylabel("accuracy")
    for axes in panels.ravel()[len(shown) :]:
        axes.set_axis_off()
    style.one_legend(upper, panels.ravel(), COLUMNS)

    grid = lower.subplots(rows, min(len(mapped), COLUMNS), squeeze=False, sharex=True, sharey=True).ravel()
    for axes, row in zip(grid, mapped):
        image = _heat_map(axes, row)
    for axes in grid[len(mapped) :]:
        axes.set_axis_off()
    lower.colorbar(image, ax=list(grid), label="accuracy", ticks=[0, 0.5, 1])
    state = "methods fine-tuned, the original as it is" if states[True] else "without training"
    lower.suptitle(f"by depth, {state}", x=0.01, ha="left", fontsize=8)
    lower.supxlabel("prompt length (1024 tokens)", fontsize=8)
    lower.supylabel("depth of the key", fontsize=8)
    return figure


def _curves(axes: Axes, rows: list[Row], drawn: dict, context_length: int, factor: float) -> None:
    for index, row in enumerate(rows):
        seeds = [run["scores"]["by_length"] for run in row.runs]
        step = 0.006 * max(cell["length"] for cell in seeds[0]) / 1024  # side by side, or the intervals hide each other
        length = [cell["length"] / 1024 + step * (index - (len(rows) - 1) / 2) for cell in seeds[0]]
        # Prompts are the same for every seed, so their intervals do not pool: the bar spans all of them.
        mean, low, high = (stacked([[c[end] for c in cells] for cells in seeds]) for end in ("mean", "low", "high"))
        mean, low, high = mean.mean(axis=0), low.min(axis=0), high.max(axis=0)
        axes.errorbar(
            length,
            mean,
            yerr=[mean - low, high - mean],
            label=row.setting.name,
            capsize=1.5,
            elinewidth=0.6,
            marker="o",
            markersize=3,
            **style.line(drawn[row.setting]),
        )
    for share, name in ((1, "L"), (factor, "L′")) if factor > 1 else ((1, "L"),):
        position = context_length * share / 1024
        axes.axvline(position, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(name, (position, 1.0), xytext=(2, 6), textcoords="offset points", fontsize=7)
    axes.set_ylim(-0.05, 1.15)
    axes.set_xlim(0)
    lengths = [cell["length"] / 1024 for cell in rows[0].first["scores"]["by_length"]]
    axes.set_xticks(lengths, [f"{length:.3g}" for length in lengths])
    axes.set_xlabel("prompt length (1024 tokens)")


def _heat_map(axes: Axes, row: Row):
    cells = [cell for run in row.runs for cell in run["scores"]["by_depth"]]
    lengths = sorted({cell["length"] for cell in cells})
    depths = sorted({cell["depth"] for cell in cells})
    values = np.zeros((len(depths), len(lengths)))
    for cell in cells:  # as many of each as there are seeds
        values[depths.index(cell["depth"]), lengths.index(cell["length"])] += cell["mean"] / len(row.runs)
    image = axes.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    axes.set_xticks(range(len(lengths)), [f"{length / 1024:.3g}" for length in lengths])
    axes.set_yticks(range(len(depths)), [f"{depth:.2g}" for depth in depths])
    extended = row.setting.method not in (None, rope.ORIGINAL)
    axes.set_title(row.setting.name + (f", s = {row.setting.factor:g}" if extended else ""), loc="left")
    axes.grid(visible=False)
    return image
