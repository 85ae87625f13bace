"""Passkeys found."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from analysis.comparison import Row, compared, own_methods
from analysis.results import Results
from analysis.settings import STATES, Setting
from core import rope
from figures.kit import style

_UNEXTENDED = (None, rope.ORIGINAL)


def passkey(results: Results) -> Figure:
    """Figure 4: passkeys found by length, method and depth.

    Curves: the share of passkeys that is found by the methods that the paper compares, with 95 %
    intervals. The original is not fine-tuned in any panel. The paper claims 100 % for its method up
    to L'. Maps: the same by the place of the key in the text; yellow is found, dark blue is missed.
    The table has every method.

    A panel for each state and scaling factor; below, a map for each method at the least factor,
    fine-tuned where there is that. Means over seeds.

    Raises:
        NotMeasured: no record of experiments.passkey by one of the paper's methods.
    """
    rows = [row for trained, _ in STATES for row in _papers(results, trained)]
    if not rows:
        raise results.lacks("record of passkey by a method of the paper's", "passkey")
    plain = [row for row in rows if row.setting.method in _UNEXTENDED][:1]  # the same at every s
    extended = [row for row in rows if row.setting.method not in _UNEXTENDED]
    states = list(dict.fromkeys(row.trained for row in extended)) or [False]
    factors = sorted({row.setting.factor for row in extended}) or [1.0]

    heights = (1.5 * len(states) + 0.3, 1.5)
    figure = plt.figure(figsize=(style.PAGE, sum(heights)))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights)
    grid = upper.subplots(len(states), len(factors), squeeze=False, sharex=True, sharey=True)
    looks = style.styles(row.setting for row in rows)
    for line, trained in zip(grid, states):
        for axes, factor in zip(line, factors):
            shown = plain + _at(extended, trained, factor)
            _curves(axes, shown, looks, results.context_length)
            axes.set_title(_title(trained, factor), loc="left")
        line[0].set_ylabel("passkeys found")
    for axes in grid[-1]:
        axes.set_xlabel("prompt length (1024 tokens)")
    style.one_legend(upper, grid.ravel(), 6)
    _maps(lower, plain + _at(extended, states[-1], factors[0]))
    title = f"by depth, {_title(states[-1], factors[0])}"
    lower.suptitle(title, x=0.01, ha="left", fontsize=8)
    return figure


def _papers(results: Results, trained: bool) -> list[Row]:
    """The rows of a model as it is and of each method that the paper compares, its own at the n̂ of
    its experiments where that is set by hand; and of a user's own methods."""
    listed = []
    users = own_methods(results)
    for row in compared(results, "passkey", trained).rows:
        setting = row.setting
        method = rope.METHODS.get(setting.method)
        papers = setting.method in _UNEXTENDED or (method is not None and method.published)
        own = setting.method == rope.PROPOSED
        n_hat = results.n_hat.get(setting.factor) if own else None
        papers = papers and setting.plain("n_hat") and setting.option("n_hat") == n_hat
        if papers or setting.method in users:
            listed.append(row)
    return listed


def _at(rows: list[Row], trained: bool, factor: float) -> list[Row]:
    return [row for row in rows if row.trained == trained and row.setting.factor == factor]


def _title(trained: bool, factor: float) -> str:
    return f"{dict(STATES)[trained]}, s = {factor:g}"


def _label(setting: Setting) -> str:
    """The name of a method in every panel."""
    if setting.option("n_hat"):
        return f"{rope.METHODS[setting.method].title} (the paper's n̂)"
    return setting.name


def _curves(axes: Axes, rows: list[Row], looks: dict, context_length: int) -> None:
    for index, row in enumerate(rows):
        cells = pd.DataFrame([cell for run in row.runs for cell in run.scores["by_length"]])
        # Prompts are the same for every seed, so their intervals do not pool: the bar spans all of
        # them.
        seeds = cells.groupby("length").agg({"mean": "mean", "low": "min", "high": "max"})
        mean, low, high = seeds.to_numpy().T
        lengths = seeds.index.to_numpy() / 1024
        # Side by side, or the intervals hide each other.
        aside = 0.012 * lengths.max() * (index - (len(rows) - 1) / 2)
        axes.errorbar(
            lengths + aside,
            mean,
            yerr=[mean - low, high - mean],
            label=_label(row.setting),
            capsize=1,
            elinewidth=0.5,
            marker="o",
            markersize=2,
            **style.line(looks[row.setting]),
        )
    style.mark_length(axes, context_length / 1024)
    factor = max(row.setting.factor for row in rows)
    if 1 < factor <= lengths.max() * 1024 / context_length:
        style.mark_length(axes, context_length * factor / 1024, "L′")
    axes.set_ylim(-0.05, 1.25)  # the lengths are named above the curves
    axes.set_yticks([0, 0.5, 1])
    axes.set_xlim(0)
    axes.set_xticks(lengths, [f"{length:.3g}" for length in lengths])


def _maps(figure: SubFigure, rows: list[Row]) -> None:
    """A map of each row, side by side: its mean over seeds by depth and length."""
    grid = figure.subplots(1, len(rows), squeeze=False, sharey=True)[0]
    for axes, row in zip(grid, rows):
        cells = pd.DataFrame([cell for run in row.runs for cell in run.scores["by_depth"]])
        shares = cells.pivot_table("mean", "depth", "length")
        image = axes.imshow(shares, vmin=0, vmax=1, cmap="cividis", aspect="auto")
        lengths = [f"{length / 1024:.3g}" for length in shares.columns]
        axes.set_xticks(range(len(lengths)), lengths)
        axes.set_yticks(range(len(shares)), [f"{depth:.2g}" for depth in shares.index])
        axes.set_title(row.setting.name, loc="left")
        axes.grid(visible=False)
    figure.colorbar(image, ax=list(grid), label="passkeys found", ticks=[0, 0.5, 1])
    figure.supxlabel("prompt length (1024 tokens)", fontsize=8)
    grid[0].set_ylabel("depth")
