"""Figure 3: angle frequencies of pairs 6 and 22, first 24 intervals.

A bar is the share of positions at which a pair's angle falls into an interval: within L as
pre-trained, and within L' under each strategy. Where the bars of a group have the same height, the
strategy keeps the distribution.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from analysis.results import Results
from figures.kit import histograms, style

PAIRS = (6, 22)
SHOWN = 24


def build(results: Results) -> Figure:
    """Computed from the model's geometry."""
    pairs = histograms.pair_angles(results, PAIRS)
    figure, rows = plt.subplots(
        len(pairs), 1, figsize=(style.COLUMN, 3.2), sharex=True, squeeze=False
    )
    for axes, angles in zip(rows[:, 0], pairs):
        for offset, (name, colour) in zip((-0.3, 0, 0.3), histograms.COLOURS.items()):
            heights = angles.frequency[name][:SHOWN]
            label = name.replace("pretrained", "pre-trained")
            axes.bar(
                np.arange(len(heights)) + offset, heights, width=0.3, color=colour, label=label
            )
        axes.set_title(f"pair {angles.pair}", loc="left")
        axes.set_ylabel("frequency (%)")
        axes.grid(axis="x", visible=False)
    rows[-1, 0].set_xlabel(
        f"interval k of b = {histograms.INTERVALS} (width {360 / histograms.INTERVALS:g}°)"
    )
    style.one_legend(figure, [rows[0, 0]], 3)
    return figure
