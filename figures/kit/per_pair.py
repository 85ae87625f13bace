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
_MARKERS = "osD"


def draw(results: Results, names: dict[str, str]) -> Figure:
    """Disturbance against pair index, one panel per factor, on a logarithmic axis.

    Args:
        names: of two or three methods, by method; the last is filled.
    """
    geometry = results.model.geometry
    factors = disturbance.factors(results)
    size = style.COLUMN, 0.5 + 1.5 * len(factors)
    figure, rows = plt.subplots(len(factors), 1, figsize=size, sharex=True, squeeze=False)
    for axes, factor in zip(rows[:, 0], factors):
        _panel(axes, geometry, factor, names)
        length = tokens(extended_length(results, factor))
        axes.set_title(f"{length} (s = {factor:g})", loc="left")
        axes.set_ylabel("disturbance (nat)")
        # Pairs from here on do not complete a rotation within L.
        slow = int((geometry.wavelength <= geometry.context_length).sum())
        axes.axvline(slow - 0.5, color="black", linewidth=0.6, linestyle=":")
        axes.annotate(
            "λ > L", (slow - 0.1, 1), xycoords=("data", "axes fraction"), va="top", fontsize=7
        )
    rows[-1, 0].set_xlabel("pair index i (high to low frequency)")
    style.one_legend(figure, [rows[0, 0]], len(names))
    return figure


def _panel(axes: Axes, geometry: RopeGeometry, factor: float, names: dict[str, str]) -> None:
    drawn = style.styles(Setting(method) for method in names)
    for (method, label), marker in zip(names.items(), _MARKERS):
        (color, _) = drawn[Setting(method)]
        filled = method == [*names][-1]
        axes.plot(
            np.maximum(disturbance.compute(geometry, Setting(method, (), factor)).per_pair, FLOOR),
            color=color,
            linewidth=0.6,
            marker=marker,
            markersize=2.2 if filled else 3.4,
            markerfacecolor=color if filled else "none",
            markeredgewidth=0.7,
            label=label,
        )
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 1.5, 5)
    axes.set_yticks(
        [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["≤10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"]
    )
    axes.yaxis.set_minor_locator(plt.NullLocator())
