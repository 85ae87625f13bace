"""The angles of single pairs, pre-trained, interpolated and extrapolated: Figures 1, 2, 3 and 6.

They show pairs of the geometry that the paper's models have, and no other's.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import published
from analysis.results import NotMeasured, Results
from core.angles import angle_distribution as distribution
from figures.kit import style

# b and s of the paper's figures
INTERVALS = 360
FACTOR = 2
COLOURS = {"pre-trained": "#999999", "interpolated": "#E69F00", "extrapolated": "#0072B2"}

Frequencies = dict[str, np.ndarray]  # the per cent of positions in each interval, by COLOURS' names


def angle_distribution(results: Results) -> Figure:
    """Figure 1: angles of two pairs, pre-trained and extended.

    In one pair extrapolation fits the pre-trained distribution, in another interpolation. Grey: the
    angles that a pair takes within L. Lines: the angles that it takes within L' under each
    strategy. For each pair, the strategy whose line follows the grey area is the one that keeps the
    distribution.
    """
    frequencies = _frequencies(results, 22, 50)
    figure, columns = plt.subplots(1, 2, figsize=(style.PAGE, 2.1))
    # The combs of a fast pair show in a part of the circle; the range of a slow one needs the
    # whole.
    panels = [(22, 60, ", first part of the circle"), (50, INTERVALS, "")]
    for axes, letter, (pair, shown, part) in zip(columns, "ab", panels):
        _steps(axes, frequencies[pair], ("extrapolated", "interpolated"))
        wavelength = results.geometry.wavelength[pair]
        axes.set_title(f"({letter}) pair {pair}, wavelength {wavelength:,.0f} tokens", loc="left")
        axes.set_xlabel(f"rotary angle (degrees{part})")
        axes.set_xticks(np.linspace(0, shown, 7))
        axes.set_xlim(0, shown)
        axes.set_ylim(0)
    columns[0].set_ylabel("frequency (%)")
    style.one_legend(figure, columns, 3)
    return figure


def interpolation(results: Results) -> Figure:
    """Figure 2: what interpolation and extrapolation do to positions.

    Extrapolation reaches position indices never seen, interpolation angles never seen. An
    illustration of one pair (θ = 2π/9, L = 12, s = 2), drawn from the definition; it shows no
    measurement. Circles: the positions of pre-training. Squares, above: positions beyond L.
    Crosses, below: angles between the pre-trained ones.
    """
    _check_geometry(results)
    theta = 2 * np.pi / 9
    length = 12
    longer = np.arange(FACTOR * length)
    curve = np.linspace(0, FACTOR * length, 600)
    between = longer[longer % FACTOR != 0] / FACTOR
    unseen_position = {"color": "#0072B2", "marker": "s", "markersize": 3.5}
    unseen_angle = {"color": "#D55E00", "marker": "x", "markersize": 4}
    panels = [
        ("extrapolation: position m, angle m·θ", curve),
        ("interpolation: position m, angle m·θ/s", curve / FACTOR),
    ]
    unseen = [
        ("unseen position", longer[length:], unseen_position),
        ("unseen angle", between, unseen_angle),
    ]
    figure, rows = plt.subplots(2, 1, figsize=(style.COLUMN, 3.0), sharex=True)
    for axes, (title, line), (label, positions, look) in zip(rows, panels, unseen):
        axes.plot(line, np.cos(line * theta), color="#bbbbbb", linewidth=0.8)
        pretrained = {"color": "#009E73", "marker": "o", "markersize": 4, "label": "pre-trained"}
        seen = longer[:length]
        axes.plot(seen, np.cos(seen * theta), linestyle="none", **pretrained)
        axes.plot(positions, np.cos(positions * theta), linestyle="none", label=label, **look)
        axes.set_title(title, loc="left")
        axes.axvline(length - 0.5, color="black", linewidth=0.8, linestyle=":")
        axes.set_ylabel("cos of the angle")
        axes.set_ylim(-1.35, 1.35)
        axes.set_xticks([0, length, FACTOR * length], ["0", "L", "L′ = 2L"])
        axes.grid(visible=False)
    axes.set_xlabel("position index that the rotation stands for")
    style.one_legend(figure, rows, 3)
    return figure


def frequency(results: Results) -> Figure:
    """Figure 3: angle frequencies of pairs 6 and 22, first 24 intervals.

    A bar is the share of positions at which a pair's angle falls into an interval: within L as
    pre-trained, and within L' under each strategy. Where the bars of a group have the same height,
    the strategy keeps the distribution.
    """
    shown = 24
    frequencies = _frequencies(results, 6, 22)
    figure, rows = plt.subplots(2, 1, figsize=(style.COLUMN, 3.2), sharex=True)
    for axes, pair in zip(rows, frequencies):
        for offset, (name, colour) in zip((-0.3, 0, 0.3), COLOURS.items()):
            places = np.arange(shown) + offset
            axes.bar(places, frequencies[pair][name][:shown], width=0.3, color=colour, label=name)
        axes.set_title(f"pair {pair}", loc="left")
        axes.set_ylabel("frequency (%)")
        axes.grid(axis="x", visible=False)
    axes.set_xlabel(f"interval k of b = {INTERVALS} (width {360 / INTERVALS:g}°)")
    style.one_legend(figure, rows, 3)
    return figure


def distribution_complete(results: Results) -> Figure:
    """Figure 6: angle distributions of pairs 6 and 22, all intervals.

    Grey: the distribution of a pair's angles within L. Line: the distribution within L' under one
    strategy. The further the line is from the grey area, the larger is the disturbance of that
    strategy.
    """
    frequencies = _frequencies(results, 6, 22)
    figure, rows = plt.subplots(4, 1, figsize=(style.PAGE, 4.6), sharex=True)
    panels = itertools.product(frequencies, ("interpolated", "extrapolated"))
    for axes, (pair, strategy) in zip(rows, panels):
        _steps(axes, frequencies[pair], (strategy,))
        axes.set_title(f"pair {pair}, {strategy}", loc="left")
        axes.set_ylim(0)
    figure.supylabel("frequency (%)", fontsize=8)
    axes.set_xlabel(f"interval k of b = {INTERVALS}")
    axes.set_xlim(0, INTERVALS)
    style.one_legend(figure, rows, 3)
    return figure


def _check_geometry(results: Results) -> None:
    """NotMeasured for a model of another geometry than the paper's."""
    if results.geometry != published.GEOMETRY:
        raise NotMeasured(
            "the paper shows angles of its own models' geometry, which "
            f"{results.name} does not have; `python -m figures --model llama2-7b` draws them."
        )


def _frequencies(results: Results, *pairs: int) -> dict[int, Frequencies]:
    """How each pair's angles are distributed within L, and within L' under both strategies."""
    _check_geometry(results)
    geometry = results.geometry
    length = geometry.context_length
    by_pair = {}
    for pair in pairs:
        theta = geometry.inv_freq[[pair]]
        by_pair[pair] = {
            "pre-trained": 100 * distribution(theta, length, INTERVALS)[0],
            "interpolated": 100 * distribution(theta / FACTOR, FACTOR * length, INTERVALS)[0],
            "extrapolated": 100 * distribution(theta, FACTOR * length, INTERVALS)[0],
        }
    return by_pair


def _steps(axes: Axes, frequencies: Frequencies, strategies: tuple[str, ...]) -> None:
    """A line for each strategy, over the pre-trained area."""
    label = "pre-trained"
    axes.stairs(frequencies[label], fill=True, color="#cccccc", label=label)
    for name in strategies:
        axes.stairs(frequencies[name], color=COLOURS[name], linewidth=0.8, label=name)
