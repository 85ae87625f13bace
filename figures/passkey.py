"""Passkeys found."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure

from analysis import metrics
from analysis.comparison import Row, compared, own_methods
from analysis.comparison import factors as measured_factors
from analysis.results import Results
from analysis.scores import counted
from analysis.settings import STATES, of_all_factors
from core import rope
from core.setting import tokens
from figures.kit import style

_UNEXTENDED = (None, rope.ORIGINAL)
_PAPERS = 5  # the original, and the methods that the paper compares


def passkey(results: Results) -> Figure:
    """Figure 4: passkeys found, by prompt length, method and depth.

    The paper claims 100 % for its method up to L'. It is shown beside the methods that the paper
    compares, and up to two of a user's own; the original is not fine-tuned in any panel. The table
    has every method.

    At most MOST settings. A panel for each state and scaling factor; below, a map for each method,
    fine-tuned where there is that, at the least factor of that state. Means over seeds.

    Raises:
        NotMeasured: no record of experiments.passkey by one of the paper's methods.
    """
    rows = [
        row
        for trained in STATES
        for factor in measured_factors(results, "passkey")  # each may have prompts of its own
        for row in _papers(results, trained, factor)
    ]
    if not rows:
        raise results.lacks("record of passkey by a method of the paper's", "passkey")
    users = own_methods(results)  # come last: a method may have many settings
    papers_first = sorted(rows, key=lambda row: row.setting.method in users)
    names = dict.fromkeys(of_all_factors(row.setting) for row in papers_first)
    marks = dict(zip(names, "osD^v<>"))  # MOST
    rows = [row for row in rows if of_all_factors(row.setting) in marks]
    unextended = [row for row in rows if row.setting.method in _UNEXTENDED]
    extended = [row for row in rows if row.setting.method not in _UNEXTENDED]
    states = sorted({row.trained for row in extended}) or [False]
    factors = sorted({row.setting.factor for row in extended}) or [1.0]

    heights = (1.5 * len(states) + 0.6, 1.7)
    figure = plt.figure(figsize=(style.PAGE, sum(heights) + 0.5))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights)
    grid = upper.subplots(len(states), len(factors), squeeze=False, sharex="col", sharey=True)
    looks = style.styles(row.setting for row in rows)
    for column, factor in zip(grid.T, factors):
        plain = _plain(unextended, factor)
        of_factor = [row for row in extended if row.setting.factor == factor]
        lengths = _asked("length", plain + of_factor)
        for axes, trained in zip(column, states):
            _points(axes, plain + _at(extended, trained, factor), lengths, looks, marks)
            axes.set_title(_title(trained, factor))
        _name_lengths(column[-1], lengths, factor, results.context_length)
        column[-1].set_xlabel("prompt length (tokens)")
    for axes in grid[:, 0]:
        axes.set_ylabel("share of keys found")
    style.one_legend(upper, grid.ravel(), _PAPERS)
    least = next((factor for factor in factors if _at(extended, states[-1], factor)), factors[0])
    shown = _plain(unextended, least) + _at(extended, states[-1], least)
    _maps(lower, shown)
    lower.suptitle(
        f"the same by the depth of the key, {_title(states[-1], least)}; "
        f"{_prompts(shown, 'by_depth')} a cell",
        x=0.01,
        ha="left",
    )
    style.note(
        figure,
        f"More is better. Points between two lines are of the same length. A point: "
        f"{_prompts(rows, 'by_length')}, mean over seeds; its bar: the 95 % interval over depths "
        "and seeds. The original is not fine-tuned in any panel. "
        "Depth: 0 is the start of the prompt, 1 its end; a blank cell was not asked.",
    )
    return figure


def _papers(results: Results, trained: bool, factor: float) -> list[Row]:
    """The rows of a model as it is and of each method that the paper compares, its own at the n̂ of
    its experiments where that is set by hand; and of as many of a user's own methods as there is
    room for."""
    listed = []
    users = own_methods(results)[: style.MOST - _PAPERS]
    for row in compared(results, "passkey", trained, factor).rows:
        setting = row.setting
        method = rope.METHODS.get(setting.method)
        papers = setting.method in _UNEXTENDED or (method is not None and method.published)
        n_hat = results.n_hat.get(setting.factor) if setting.method == rope.PROPOSED else None
        papers = papers and setting.plain("n_hat") and setting.option("n_hat") == n_hat
        if papers or setting.method in users:
            listed.append(row)
    return listed


def _plain(rows: list[Row], factor: float) -> list[Row]:
    """The model that is not extended, which is the same at every s: with the prompts of this factor
    where it was asked them."""
    here = [row for row in rows if row.setting.factor == factor]
    return (here or rows)[:1]


def _at(rows: list[Row], trained: bool, factor: float) -> list[Row]:
    return [row for row in rows if row.trained == trained and row.setting.factor == factor]


def _title(trained: bool, factor: float) -> str:
    return f"{STATES[trained]}, s = {factor:g}"


def _prompts(rows: list[Row], cells: str) -> str:
    """How many prompts of a length there are, or of a length and a depth."""
    numbers = [cell["n"] for row in rows for cell in row.first.scores[cells]]
    most = counted(max(numbers), "prompt")
    return most if min(numbers) == max(numbers) else f"{min(numbers)} to {most}"


def _asked(what: str, rows: list[Row]) -> list[float]:
    """The lengths, or the depths, of all rows' prompts."""
    return sorted({cell[what] for row in rows for cell in row.first.scores["by_depth"]})


def _points(
    axes: Axes, rows: list[Row], lengths: list[float], looks: dict, marks: dict[str, str]
) -> None:
    """A point of each row at each of its lengths, side by side in a field of that length."""
    fields = {tokens(length): field for field, length in enumerate(lengths)}
    for index, row in enumerate(rows):
        shares = row.scores(metrics.passkey)
        aside = (index + 1) / (len(rows) + 1) - 0.5
        ends = [
            (of.mean, of.mean, of.mean) if of.low is None else (of.mean, of.low, of.high)
            for of in shares.values()
        ]
        mean, low, high = np.array(ends).T / 100
        axes.errorbar(
            [fields[length] + aside for length in shares],
            mean,
            yerr=[mean - low, high - mean],
            label=of_all_factors(row.setting),
            linestyle="none",
            capsize=1.5,
            elinewidth=0.7,
            marker=marks[of_all_factors(row.setting)],
            markersize=3,
            color=looks[row.setting][0],
        )
    axes.set(xlim=(-0.5, len(lengths) - 0.5), ylim=(-0.05, 1.05), yticks=[0, 0.5, 1])
    _divide(axes.xaxis, len(lengths), "#bbbbbb")


def _name_lengths(axes: Axes, lengths: list[float], factor: float, context_length: int) -> None:
    """Name the fields of a column of panels, which share an axis."""
    names = {factor * context_length: " = L′"}
    names[context_length] = " = L"  # at s = 1, too
    labels = [f"{tokens(length)}{names.get(length, '')}" for length in lengths]
    axes.set_xticks(range(len(lengths)), labels)


def _maps(figure: SubFigure, rows: list[Row]) -> None:
    """A map of each row, side by side: its mean over seeds by depth and length, blank where it was
    not asked."""
    depths, lengths = _asked("depth", rows), _asked("length", rows)
    grid = figure.subplots(1, len(rows), squeeze=False, sharey=True)[0]
    for axes, row in zip(grid, rows):
        cells = pd.DataFrame([cell for run in row.runs for cell in run.scores["by_depth"]])
        shares = cells.pivot_table("mean", "depth", "length")
        shares = shares.reindex(index=depths, columns=lengths)
        image = axes.imshow(shares, vmin=0, vmax=1, cmap="cividis", aspect="auto")
        axes.set_xticks(range(len(shares.columns)), [tokens(each) for each in shares.columns])
        axes.set_yticks(range(len(shares)), [f"{depth:.2g}" for depth in shares.index])
        axes.set_title(row.setting.name)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        _divide(axes.xaxis, len(shares.columns), "white")
        _divide(axes.yaxis, len(shares), "white")
    figure.colorbar(image, ax=list(grid), label="found", ticks=[0, 0.5, 1])
    figure.supxlabel("prompt length (tokens)")
    grid[0].set_ylabel("depth of the key")


def _divide(axis: Axis, fields: int, color: str) -> None:
    """Lines between the fields of an axis, each of which is one value."""
    axis.set_ticks(np.arange(1, fields) - 0.5, minor=True)
    axis.set_tick_params(which="minor", length=0)
    axis.grid(visible=False, which="major")
    axis.grid(visible=True, which="minor", color=color, linewidth=1.2)
