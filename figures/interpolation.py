"""Figure 2: what interpolation and extrapolation do to positions.

Extrapolation reaches position indices never seen, interpolation angles never seen. An illustration
of one pair (θ = 2π/9, L = 12, s = 2), drawn from the definition; it shows no measurement. Circles:
the positions of pre-training. Squares, above: positions beyond L. Crosses, below: angles between
the pre-trained ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from analysis.results import Results
from figures.kit import histograms, style

THETA = 2 * np.pi / 9
LENGTH = 12
FACTOR = 2


def build(results: Results) -> Figure:
    """From the definition, the same for every model; it stands beside the other figures of
    angles."""
    histograms.check_geometry(results)
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(style.COLUMN, 3.0), sharex=True)
    seen = np.arange(LENGTH)
    longer = np.arange(LENGTH * FACTOR)
    curve = np.linspace(0, longer[-1] + 1, 600)
    seen_style = {
        "marker": "o",
        "linestyle": "none",
        "color": "#009E73",
        "markersize": 4,
        "label": "pre-trained",
    }

    upper.plot(curve, np.cos(curve * THETA), color="#bbbbbb", linewidth=0.8)
    upper.plot(seen, np.cos(seen * THETA), **seen_style)
    beyond = longer[LENGTH:]
    upper.plot(
        beyond,
        np.cos(beyond * THETA),
        "s",
        color="#0072B2",
        markersize=3.5,
        label="unseen position",
    )
    upper.set_title("extrapolation: position m, angle m·θ", loc="left")

    lower.plot(curve / FACTOR, np.cos(curve / FACTOR * THETA), color="#bbbbbb", linewidth=0.8)
    lower.plot(seen, np.cos(seen * THETA), **seen_style)
    between = longer[longer % FACTOR != 0] / FACTOR
    lower.plot(
        between, np.cos(between * THETA), "x", color="#D55E00", markersize=4, label="unseen angle"
    )
    lower.set_title("interpolation: position m, angle m·θ/s", loc="left")
    lower.set_xlabel("position index that the rotation stands for")

    for axes in (upper, lower):
        axes.axvline(LENGTH - 0.5, color="black", linewidth=0.8, linestyle=":")
        axes.set_ylabel("cos of the angle")
        axes.set_ylim(-1.35, 1.35)
        axes.set_xticks([0, LENGTH, LENGTH * FACTOR], ["0", "L", "L′ = 2L"])
        axes.grid(visible=False)
    style.one_legend(figure, (upper, lower), 3)
    return figure
