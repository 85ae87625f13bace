"""Figure 4: passkeys found by length, method and depth.

Curves: the share of passkeys that is found, with 95 % intervals, in panels of at most five models.
The paper claims 100 % for its method up to L'. Maps: the same by the place of the key in the text;
yellow is found, dark blue is missed.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from analysis.comparison import Row, compared, in_comparison
from analysis.results import Results
from analysis.scores import stacked
from analysis.settings import STATES
from core import rope
from figures.kit import style

COLUMNS = 4  # of heat maps


def build(results: Results) -> Figure:
    """Curves for each scaling factor, without training and fine-tuned; below, a heat map for each
    model that was fine-tuned, or for each model where none was. Means over seeds.

    Raises:
        NotMeasured: no record of experiments.passkey.
    """
    results.require("passkey")
    listed = in_comparison(results.model)
    untrained, tuned = (
        compared(results, "passkey", trained).only(listed).rows for trained in (False, True)
    )
    # The model that was not extended is the same at every factor.
    plain = [row for row in untrained if row.setting.method in (None, rope.ORIGINAL)][:1]
    states = [
        [row for row in rows if row.setting.method not in (None, rope.ORIGINAL)]
        for rows in (untrained, tuned)
    ]
    if not (plain or states[0] or states[1]):
        raise results.lacks(
            "record of passkey besides ablations and factors from a file", "passkey"
        )
    curves = {
        f"{state}, s = {factor:g}": {row.setting: row for row in plain + own}
        for (_, state), rows in zip(STATES, states)
        for factor in sorted({row.setting.factor for row in rows})
        if (own := [row for row in rows if row.setting.factor == factor])
    }
    curves = curves or {rope.METHODS[rope.ORIGINAL].title: {row.setting: row for row in plain}}
    panels = {title: style.panels(rows) for title, rows in curves.items()}
    drawn = style.styles(*(panel for own in panels.values() for panel in own))
    mapped = plain + sorted(states[True] or states[False], key=lambda row: row.setting.factor)
    heights = [
        1.45 * sum(map(style.lines_of, panels.values())),
        0.5 + 0.8 * -(-len(mapped) // COLUMNS),
    ]
    figure = plt.figure(figsize=(style.PAGE, sum(heights)))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights)
    for title, placed in style.small_multiples(upper, panels).items():
        for axes, panel in zip(placed, panels[title]):
            _curves(
                axes,
                [curves[title][setting] for setting in panel],
                drawn,
                results.model.context_length,
            )
        placed[0].set_ylabel("passkeys found")
    _heat_maps(lower, mapped)
    state = "methods fine-tuned, the original as it is" if states[True] else "without training"
    lower.suptitle(f"by depth, {state}", x=0.01, ha="left", fontsize=8)
    return figure


def _curves(axes: Axes, rows: list[Row], drawn: dict, context_length: int) -> None:
    ends, colours = {}, {}
    for index, row in enumerate(rows):
        seeds = [run["scores"]["by_length"] for run in row.runs]
        step = (
            0.012 * max(cell["length"] for cell in seeds[0]) / 1024
        )  # side by side, or the intervals hide each other
        length = [cell["length"] / 1024 + step * (index - (len(rows) - 1) / 2) for cell in seeds[0]]
        # Prompts are the same for every seed, so their intervals do not pool: the bar spans all of
        # them.
        mean, low, high = (
            stacked([[c[end] for c in cells] for cells in seeds]) for end in ("mean", "low", "high")
        )
        mean, low, high = mean.mean(axis=0), low.min(axis=0), high.max(axis=0)
        axes.errorbar(
            length,
            mean,
            yerr=[mean - low, high - mean],
            label=row.setting.name,
            capsize=1,
            elinewidth=0.5,
            marker="o",
            markersize=2,
            **style.line(drawn[row.setting]),
        )
        ends[row.setting.name], colours[row.setting.name] = (
            (length[-1], mean[-1]),
            drawn[row.setting][0],
        )
    style.mark_length(axes, context_length / 1024)
    if (factor := max(row.setting.factor for row in rows)) > 1:
        style.mark_length(axes, context_length * factor / 1024, "L′")
    axes.set_ylim(-0.05, 1.25)  # the lengths are named above the curves
    axes.set_yticks([0, 0.5, 1])
    axes.set_xlim(0)
    lengths = [cell["length"] / 1024 for cell in rows[0].first["scores"]["by_length"]]
    axes.set_xticks(lengths, [f"{length:.3g}" for length in lengths])
    axes.set_xlabel("prompt length (1024 tokens)")
    style.name_curves(axes, ends, colours)


def _heat_maps(figure: SubFigure, rows: list[Row]) -> None:
    """A map of each row."""
    grid = figure.subplots(
        -(-len(rows) // COLUMNS), min(len(rows), COLUMNS), squeeze=False, sharey=True
    ).ravel()
    for index, (axes, row) in enumerate(zip(grid, rows)):
        image = _heat_map(axes, row)
        axes.tick_params(labelbottom=index + COLUMNS >= len(rows))  # the lowest of its column
    for axes in grid[len(rows) :]:
        axes.set_axis_off()
    figure.colorbar(image, ax=list(grid), label="passkeys found", ticks=[0, 0.5, 1])
    figure.supxlabel("prompt length (1024 tokens)", fontsize=8)
    figure.supylabel("depth of the key", fontsize=8)


def _heat_map(axes: Axes, row: Row):
    cells = [cell for run in row.runs for cell in run["scores"]["by_depth"]]
    lengths = sorted({cell["length"] for cell in cells})
    depths = sorted({cell["depth"] for cell in cells})
    values = np.zeros((len(depths), len(lengths)))
    for cell in cells:  # as many of each as there are seeds
        values[depths.index(cell["depth"]), lengths.index(cell["length"])] += cell["mean"] / len(
            row.runs
        )
    image = axes.imshow(values, vmin=0, vmax=1, cmap="cividis", aspect="auto")
    axes.set_xticks(range(len(lengths)), [f"{length / 1024:.3g}" for length in lengths])
    axes.set_yticks(range(len(depths)), [f"{depth:.2g}" for depth in depths])
    extended = row.setting.method not in (None, rope.ORIGINAL)
    axes.set_title(
        row.setting.name + (f", s = {row.setting.factor:g}" if extended else ""), loc="left"
    )
    axes.grid(visible=False)
    return image
