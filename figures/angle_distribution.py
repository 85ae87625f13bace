"""Figure 1 of the paper: in one pair extrapolation fits the pre-trained distribution, in another interpolation."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from figures import common, histograms

PAIRS = (22, 50)


def build(results: Path, scale: str) -> Figure:
    record, scores = histograms.load(results, scale)
    # The combs of a fast pair show in a part of the circle; the range of a slow one needs the whole.
    spans = (60, record["intervals"])
    figure, columns = plt.subplots(1, 2, figsize=(common.PAGE, 2.1))
    for axes, index, span, letter in zip(columns, PAIRS, spans, "ab"):
        score = histograms.pair(scores, index)
        histograms.steps(axes, score, span)
        axes.set_title(f"({letter}) pair {index}, wavelength {score['wavelength']:,.0f} tokens", loc="left")
        axes.set_xlabel(f"rotary angle (degrees{'' if span == record['intervals'] else ', first part of the circle'})")
        ticks = [span * i // 6 for i in range(7)]
        axes.set_xticks(ticks, [f"{360 * tick / record['intervals']:g}" for tick in ticks])
        axes.set_xlim(0, span)
        axes.set_ylim(0)
    columns[0].set_ylabel("frequency (%)")
    histograms.legend(figure, columns[0])
    return figure


if __name__ == "__main__":
    common.run("angle_distribution", __doc__, "llama2-7b", build)
