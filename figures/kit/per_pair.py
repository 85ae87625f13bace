"""Drawing the disturbance of methods pair by pair."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import disturbance
from analysis.results import Results
from analysis.settings import Setting, extended_length, tokens
from core.geometry import RopeGeometry
from figures.kit import style

FLOOR = 1e-5  # nats; smaller disturbances are drawn here
_MARKERS = "osD^vP<>X"


def draw(results: Results, names: dict[str, str]) -> Figure:
    """Disturbance against pair index, one panel per factor, on a logarithmic axis.

    Args:
        names: of the methods to draw, by method; the last of the first three is filled.
    """
    geometry, factors = results.model.geometry, disturbance.factors(results)
    height = 0.5 + 1.5 * len(factors) + 0.12 * (len(names) // 4)
    figure, rows = plt.subplots(len(factors), 1, figsize=(style.COLUMN, height), sharex=True, squeeze=False)
    for axes, factor in zip(rows[:, 0], factors):
        _panel(axes, geometry, factor, names)
        length = tokens(extended_length(results, factor))
        axes.set_title(f"{length} (s = {factor:g})", loc="left")
        axes.set_ylabel("disturbance (nat)")
        # Pairs from here on do not complete a rotation within L.
        slow = int((geometry.wavelength <= geometry.context_length).sum())
        axes.axvline(slow - 0.5, color="black", linewidth=0.6, linestyle=":")
        axes.annotate("λ > L", (slow - 0.1, 1), xycoords=("data", "axes fraction"), va="top", fontsize=7)
    rows[-1, 0].set_xlabel("pair index i (high to low frequency)")
    style.one_legend(figure, [rows[0, 0]], min(len(names), 3))
    return figure


def _panel(axes: Axes, geometry: RopeGeometry, factor: float, names: dict[str, str]) -> None:
    drawn = style.styles(Setting(method) for method in names)
    for index, (method, label) in enumerate(names.items()):
        (color, _), filled = drawn[Setting(method)], index == min(len(names), 3) - 1
        axes.plot(
            np.maximum(disturbance.compute(geometry, Setting(method, (), factor)).per_pair, FLOOR),
            color=color,
            linewidth=0.6,
            marker=_MARKERS[index % len(_MARKERS)] if index < 2 or not filled else "D",
            markersize=2.2 if filled else 3.4,
            markerfacecolor=color if filled else "none",
            markeredgewidth=0.7,
            label=label,
        )
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 1.5, 5)
    axes.set_yticks([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["≤10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"])
    axes.yaxis.set_minor_locator(plt.NullLocator())
