"""Losses while a model is fine-tuned."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import training
from analysis.beyond.training import Gap
from analysis.results import Results
from analysis.scores import counted
from analysis.settings import seed_count
from core import rope
from figures.beyond import curves
from figures.kit import style

BASELINE = rope.METHODS[rope.BASELINE].title


def training_loss(results: Results) -> Figure:
    """Training loss of each fine-tune minus YaRN's, step by step.

    Beyond the paper, at the base model's own learning rate. Both models read the same sequences of
    L' tokens in the same order; above zero is more loss than YaRN. A thin line is one seed. A thick
    one is the mean over all seeds in each quarter of the steps, with bars of two standard errors
    over steps. The axis is logarithmic from 0.1 on.

    A panel for each scaling factor and number of sequences a step.

    Raises:
        NotMeasured: no fine-tune read what a fine-tune of YaRN read.
    """
    panels: dict[tuple, list[Gap]] = {}
    for gap in training.gaps(results):
        if _listed(gap, results):
            panels.setdefault((gap.setting.factor, gap.batch), []).append(gap)
    if not panels:
        raise results.lacks(f"fine-tune on the data of {BASELINE}'s", "finetune", "--method yarn")
    size = (style.PAGE, 2.2) if len(panels) > 1 else (3.4, 2.2)
    figure, grid = plt.subplots(1, len(panels), figsize=size, squeeze=False)
    for axes, key in zip(grid[0], sorted(panels)):
        _draw(axes, panels[key])
    grid[0][0].set_ylabel(f"training loss minus {BASELINE}'s\n(nats per token)")
    return figure


def _listed(gap: Gap, results: Results) -> bool:
    """Whether it is no part of an ablation."""
    papers = results.n_hat.get(gap.setting.factor)
    return gap.setting.plain("n_hat") and gap.setting.option("n_hat") in (None, papers)


def _draw(axes: Axes, gaps: list[Gap]) -> None:
    settings = list(dict.fromkeys(gap.setting for gap in gaps))
    styles = style.styles(settings)
    ends = {}
    colours = {}
    most = 0
    for setting in settings:
        runs = np.array([gap.by_step for gap in gaps if gap.setting == setting])
        most = max(most, len(runs))
        line = style.line(styles[setting])
        steps = np.arange(1, runs.shape[1] + 1)
        axes.plot(steps, runs.T, **line | {"linewidth": 0.4, "alpha": 0.6})
        quarters = training.quarters(runs.mean(axis=0))
        middles = [part.mean() for part in np.split(steps, training.QUARTERS)]
        bars = [2 * quarter.error for quarter in quarters]
        axes.errorbar(middles, [quarter.mean for quarter in quarters], bars, capsize=2, **line)
        ends[setting.name] = steps[-1], quarters[-1].mean
        colours[setting.name] = styles[setting][0]
    axes.axhline(0, color="black", linewidth=0.4)
    sequences = counted(gaps[0].batch, "sequence")
    seeds = f"up to {seed_count(most)}" if most > 1 else seed_count(most)
    axes.set_title(f"s = {gaps[0].setting.factor:g}, {sequences} a step, {seeds}", loc="left")
    axes.set_xlabel("step")
    curves.compress(axes)
    curves.name_curves(axes, ends, colours)
