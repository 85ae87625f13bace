"""Drawing the angle distributions of one pair: pre-trained, interpolated and extrapolated."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from analysis.results import Results
from core.angles import angle_counts

COLOURS = {"pretrained": "#999999", "interpolated": "#E69F00", "extrapolated": "#0072B2"}


INTERVALS, FACTOR = 360, 2


def counts(results: Results, pairs: tuple[int, ...]) -> list[dict]:
    """How often a pair's angle falls into each interval, within L and within L' under both strategies."""
    geometry = results.model.geometry
    longer, rows = FACTOR * geometry.context_length, []
    for pair in pairs:
        theta = geometry.inv_freq[[pair]]
        angles = {
            "pretrained": (theta, geometry.context_length),
            "interpolated": (theta / FACTOR, longer),
            "extrapolated": (theta, longer),
        }
        rows.append(
            {"pair": pair, "wavelength": geometry.wavelength[pair]}
            | {name: angle_counts(*of, INTERVALS)[0] for name, of in angles.items()}
        )
    return rows


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
