"""Figure 6: angle distributions of pairs 6 and 22, all intervals.

Grey: the distribution of a pair's angles within L. Line: the distribution within L' under one
strategy. The further the line is from the grey area, the larger is the disturbance of that
strategy.
"""

import itertools

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.results import Results
from figures.kit import histograms, style

PAIRS = (6, 22)


def build(results: Results) -> Figure:
    """Computed from the model's geometry."""
    pairs = histograms.pair_angles(results, PAIRS)
    intervals = histograms.INTERVALS
    panels = list(itertools.product(pairs, ("interpolated", "extrapolated")))
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(style.PAGE, 0.2 + 1.1 * len(panels)), sharex=True
    )
    for axes, (angles, name) in zip(grid, panels):
        histograms.steps(axes, angles, intervals, (name,))
        axes.set_title(f"pair {angles.pair}, {name}", loc="left")
        axes.set_ylim(0)
    figure.supylabel("frequency (%)", fontsize=8)
    grid[-1].set_xlabel(f"interval k of b = {intervals}")
    grid[-1].set_xlim(0, intervals)
    style.one_legend(figure, grid, 3)
    return figure
