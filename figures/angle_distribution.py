"""Figure 1: angles of two pairs, pre-trained and extended.

In one pair extrapolation fits the pre-trained distribution, in another interpolation. Grey: the
angles that a pair takes within L. Lines: the angles that it takes within L' under each strategy.
For each pair, the strategy whose line follows the grey area is the one that keeps the distribution.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from analysis.results import Results
from figures.kit import histograms, style

PAIRS = (22, 50)


def build(results: Results) -> Figure:
    """Computed from the model's geometry."""
    pairs = histograms.pair_angles(results, PAIRS)
    # The combs of a fast pair show in a part of the circle; the range of a slow one needs the
    # whole.
    spans = [min(60, histograms.INTERVALS)] * (len(pairs) - 1) + [histograms.INTERVALS]
    figure, columns = plt.subplots(1, len(pairs), figsize=(style.PAGE, 2.1), squeeze=False)
    for axes, angles, span, letter in zip(columns[0], pairs, spans, "ab"):
        histograms.steps(axes, angles, span)
        axes.set_title(
            f"({letter}) pair {angles.pair}, wavelength {angles.wavelength:,.0f} tokens", loc="left"
        )
        axes.set_xlabel(
            f"rotary angle "
            f"(degrees{'' if span == histograms.INTERVALS else ', first part of the circle'})"
        )
        ticks = [span * i // 6 for i in range(7)]
        axes.set_xticks(ticks, [f"{360 * tick / histograms.INTERVALS:g}" for tick in ticks])
        axes.set_xlim(0, span)
        axes.set_ylim(0)
    columns[0, 0].set_ylabel("frequency (%)")
    style.one_legend(figure, [columns[0, 0]], 3)
    return figure
