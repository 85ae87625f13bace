"""Figure 7: disturbance of interpolating and of extrapolating each pair."""

from __future__ import annotations

from matplotlib.figure import Figure

from analysis.results import Results
from core import rope
from figures.kit.per_pair import draw


def build(results: Results) -> Figure:
    """From the records of experiments.disturbance."""
    return draw(results, {rope.UNIT: "interpolation", rope.ORIGINAL: "extrapolation"})
