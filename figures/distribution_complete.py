"""Appendix A.1 of the paper: the distributions of pairs 6 and 22 over all 360 intervals."""

from __future__ import annotations

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from figures import common, histograms
from figures.frequency import PAIRS


def build(results: Path, scale: str) -> Figure:
    record, scores = histograms.load(results, scale)
    intervals = record["intervals"]
    figure, grid = plt.subplots(4, 1, figsize=(common.PAGE, 4.6), sharex=True)
    for axes, (index, name) in zip(grid, itertools.product(PAIRS, ("interpolated", "extrapolated"))):
        histograms.steps(axes, histograms.pair(scores, index), intervals, (name,))
        axes.set_title(f"pair {index}, {name}", loc="left")
        axes.set_ylim(0)
    figure.supylabel("frequency (%)", fontsize=8)
    grid[-1].set_xlabel(f"interval k of b = {intervals}")
    grid[-1].set_xlim(0, intervals)
    histograms.legend(figure, *grid)
    return figure


if __name__ == "__main__":
    common.run("distribution_complete", __doc__, "llama2-7b", build)
