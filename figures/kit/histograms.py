"""Drawing the angle distributions of one pair: pre-trained, interpolated and extrapolated."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from analysis.results import Results
from core.errors import InputError

COLOURS = {"pretrained": "#999999", "interpolated": "#E69F00", "extrapolated": "#0072B2"}


def load(results: Results, wanted: tuple[int, ...]) -> tuple[dict, list[dict]]:
    """The record of experiments.angle_distribution of the least factor, and the counts of some pairs.

    Args:
        wanted: the paper's pairs; of a model that has none of them recorded, as many of those that are.
    """
    record = min(results.require("angle_distribution"), key=lambda record: record["factor"])
    recorded = {score["pair"]: score for score in record["scores"]}
    if not set(wanted) <= recorded.keys():
        wanted = tuple(sorted(recorded))[: len(wanted)]
    chosen = [recorded[index] for index in wanted]
    for score in chosen:
        for name in COLOURS:
            if len(score[name]) != record["intervals"] or not sum(score[name]):
                raise InputError(f"{record['file']} has not {record['intervals']} counts of a pair; measure it again.")
    return record, chosen


def frequency(score: dict, name: str) -> np.ndarray:
    """F_k^i in percent of positions."""
    counts = np.array(score[name])
    return 100 * counts / counts.sum()


def steps(axes: Axes, score: dict, intervals: int, names: tuple[str, ...] = ("extrapolated", "interpolated")) -> None:
    """Step lines over the pre-trained area, for many intervals."""
    edges = np.arange(intervals + 1)
    before = frequency(score, "pretrained")[:intervals]
    axes.stairs(before, edges, fill=True, color="#cccccc", label="pre-trained")
    for name in names:
        axes.stairs(frequency(score, name)[:intervals], edges, color=COLOURS[name], linewidth=0.8, label=name)
