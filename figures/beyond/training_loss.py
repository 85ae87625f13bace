"""Losses while a model is fine-tuned."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import stdtrit

from analysis.beyond import training
from analysis.beyond.training import Gap
from analysis.comparison import in_comparison, own_methods
from analysis.results import Results
from analysis.scores import counted, number
from analysis.settings import BASELINE, seed_count
from core.setting import Setting, tokens
from figures.beyond import curves
from figures.kit import style

LEAST = 2 * training.QUARTERS  # steps of which each quarter has an error


def training_loss(results: Results) -> Figure:
    """Training loss of each fine-tune minus YaRN's, step by step.

    Beyond the paper. A fine-tune and YaRN's read the same sequences of L' tokens in the same order.

    A panel for the fine-tunes that differ in their seeds and methods alone, of at most MOST
    settings, a user's own first. A fine-tune of fewer than LEAST steps is not drawn.

    Raises:
        NotMeasured: no fine-tune read what a fine-tune of YaRN read.
    """
    panels: dict[tuple, list[Gap]] = {}
    for gap in training.gaps(results):
        if len(gap.by_step) >= LEAST and in_comparison(results, gap.setting):
            read = (
                gap.setting.factor,
                gap.per_book or 0,
                gap.batch,
                gap.length,
                len(gap.by_step),
                gap.alike,
            )
            panels.setdefault(read, []).append(gap)
    if not panels:
        what = f"fine-tune of {LEAST} steps or more on the data of {BASELINE}'s"
        raise results.lacks(what, "finetune", "--method yarn")
    figure, grid = curves.panels(len(panels), 2.2, 0.6)
    for axes, key in zip(grid.ravel(), sorted(panels)):
        _draw(axes, _by_setting(panels[key], own_methods(results)))
    for axes in grid[:, 0]:
        axes.set_ylabel(f"training loss minus {BASELINE}'s\n(nats per token)")
    style.note(
        figure,
        f"Above zero: more loss than {BASELINE}, which is worse. Thin line: a seed. Thick line: "
        "mean over seeds in each quarter of the steps. Bar: Student's 95 % interval over steps.",
    )
    return figure


def _by_setting(gaps: list[Gap], users: list[str]) -> dict[Setting, list[Gap]]:
    """The fine-tunes of each setting, at most MOST settings, a user's own first."""
    of: dict[Setting, list[Gap]] = {}
    for gap in sorted(gaps, key=lambda gap: gap.setting.method not in users):
        of.setdefault(gap.setting, []).append(gap)
    return dict(list(of.items())[: style.MOST])


def _draw(axes: Axes, by_setting: dict[Setting, list[Gap]]) -> None:
    runs = {setting: np.array([gap.by_step for gap in of]) for setting, of in by_setting.items()}
    edge = curves.axis_end(of.mean() for of in runs.values())
    far = [setting for setting, of in runs.items() if abs(of.mean()) > edge]
    looks = style.styles(by_setting)
    ends = {}
    for setting in (setting for setting in runs if setting not in far):
        steps = np.arange(1, runs[setting].shape[1] + 1)
        line = style.line(looks[setting])
        axes.plot(steps, runs[setting].T, **line | {"linewidth": 0.4, "alpha": 0.6})
        quarters = training.quarters(runs[setting].mean(axis=0))
        middles = [part.mean() for part in np.array_split(steps, training.QUARTERS)]
        sizes = [len(part) for part in np.array_split(steps, training.QUARTERS)]
        bars = [
            quarter.error * stdtrit(size - 1, 0.975)
            for quarter, size in zip(quarters, sizes, strict=True)
        ]
        axes.errorbar(middles, [quarter.mean for quarter in quarters], bars, capsize=2, **line)
        ends[setting.name] = steps[-1], quarters[-1].mean, line["color"]
    axes.axhline(0, color="black", linewidth=0.4)
    first = next(iter(by_setting.values()))[0]
    most = max(map(len, runs.values()))
    read = f"{len(first.by_step)} steps of {first.batch} × {tokens(first.length)} tokens"
    seeds = f"up to {seed_count(most)}" if most > 1 else seed_count(most)
    of_book = f"{counted(first.per_book, 'sequence')} of each book, " if first.per_book else ""
    axes.set_title(f"s = {first.setting.factor:g}, {read},\n{of_book}{seeds}")
    curves.off_scale(axes, [f"{setting.name} {_course(runs[setting])}" for setting in far])
    axes.set_xlabel("step")
    curves.name_curves(axes, ends)


def _course(runs: np.ndarray) -> str:
    """The mean of the first quarter of the steps, and that of the last."""
    first, *_, last = training.quarters(runs.mean(axis=0))
    return f"{number(first.mean, 2, sign=True)} → {number(last.mean, 2, sign=True)}"
