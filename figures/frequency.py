"""Figure 3 of the paper: frequencies of pairs 6 and 22 in the first 24 of 360 intervals."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from figures import common, histograms

PAIRS, SHOWN = (6, 22), 24


def build(results: Path, scale: str) -> Figure:
    record, scores = histograms.load(results, scale)
    figure, rows = plt.subplots(2, 1, figsize=(common.COLUMN, 3.2), sharex=True)
    for axes, index in zip(rows, PAIRS):
        histograms.bars(axes, histograms.pair(scores, index), SHOWN)
        axes.set_title(f"pair {index}", loc="left")
        axes.set_ylabel("frequency (%)")
        axes.grid(axis="x", visible=False)
    rows[1].set_xlabel(f"interval k of b = {record['intervals']} (width {360 / record['intervals']:g}°)")
    histograms.legend(figure, rows[0])
    return figure


if __name__ == "__main__":
    common.run("frequency", __doc__, "llama2-7b", build)
