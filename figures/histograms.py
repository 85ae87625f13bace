"""Drawing the angle distributions of one pair: pre-trained, interpolated and extrapolated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from core.errors import InputError
from experiments import records

COLOURS = {"pretrained": "#999999", "interpolated": "#E69F00", "extrapolated": "#0072B2"}
LABELS = {name: name.replace("pretrained", "pre-trained") for name in COLOURS}


def load(results: Path, scale: str, factor: float = 2) -> tuple[dict, dict[int, dict]]:
    """The record of experiments.angle_distribution at that factor, and its scores by pair."""
    for record in records.load(results, scale, "angle_distribution"):
        if record["factor"] == factor:
            return record, {score["pair"]: score for score in record["scores"]}
    raise InputError(f"no angle distributions of {scale} at s = {factor:g}; run experiments.angle_distribution.")


def pair(scores: dict[int, dict], index: int) -> dict:
    """One pair's counts, or a sentence saying how to record them."""
    if index not in scores:
        raise InputError(f"pair {index} is not recorded; run experiments.angle_distribution with --pairs {index}.")
    return scores[index]


def frequency(score: dict, name: str) -> np.ndarray:
    """F_k^i in percent of positions."""
    counts = np.array(score[name])
    return 100 * counts / counts.sum()


def bars(axes: Axes, score: dict, intervals: int) -> None:
    """Grouped bars of the first `intervals` intervals."""
    centres = np.arange(intervals)
    for offset, (name, colour) in zip((-0.3, 0, 0.3), COLOURS.items()):
        axes.bar(centres + offset, frequency(score, name)[:intervals], width=0.3, color=colour, label=LABELS[name])


def steps(axes: Axes, score: dict, intervals: int, names: tuple[str, ...] = ("extrapolated", "interpolated")) -> None:
    """Step lines over the pre-trained area, for many intervals."""
    edges = np.arange(intervals + 1)
    before = frequency(score, "pretrained")[:intervals]
    axes.stairs(before, edges, fill=True, color="#cccccc", label="pre-trained")
    for name in names:
        axes.stairs(frequency(score, name)[:intervals], edges, color=COLOURS[name], linewidth=0.8, label=name)


def legend(figure: Figure, *panels: Axes) -> None:
    """One legend above the figure, each label once."""
    handles = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, handletextpad=0.4)
