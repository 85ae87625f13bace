"""The angles of single pairs, pre-trained, interpolated and extrapolated: Figures 1, 2, 3 and 6.

They show pairs of the geometry that the paper's models have, and no other's.
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import disturbance, published
from analysis.results import NotMeasured, Results
from core import rope
from core.angles import angle_distribution as distribution
from core.setting import Setting
from figures.kit import style

# b and s of the paper's figures
INTERVALS = 360
FACTOR = 2
COLOURS = {"pre-trained": "#999999", "interpolated": "#E69F00", "extrapolated": "#0072B2"}

LENGTHS = "Pre-trained: within L = 4k; others: within L′ = 8k, s = 2."
CLOSER = (
    "Share of the positions whose angle falls into an interval of 1°. The closer a line follows "
    f"the grey area, the less the strategy disturbs, which the paper aims at. {LENGTHS}"
)

# The per cent of positions in each interval, by COLOURS' names: [pairs, intervals].
Frequencies = dict[str, np.ndarray]


def angle_distribution(results: Results) -> Figure:
    """Figure 1: angles of two pairs, pre-trained and extended.

    In pair 22 extrapolation keeps the pre-trained distribution of angles (grey), in pair 50
    interpolation: its line follows the grey area.
    """
    frequencies = _frequencies(results)
    figure, columns = plt.subplots(1, 2, figsize=(style.PAGE, 2.6))
    # The combs of a fast pair show in a part of the circle; the range of a slow one needs the
    # whole.
    panels = [(22, 60, ", first part of the circle"), (50, INTERVALS, "")]
    for axes, letter, (pair, shown, part) in zip(columns, "ab", panels):
        _steps(axes, frequencies, pair, "extrapolated", "interpolated")
        wavelength = results.geometry.wavelength[pair]
        axes.set(
            title=f"({letter}) pair {pair} (wavelength {wavelength:,.0f} tokens), disturbance:\n"
            f"{_disturbances(results, pair)}",
            xlabel=f"rotary angle (degrees{part})",
            xticks=np.linspace(0, shown, 7),
            xlim=(0, shown),
            ylim=(0, None),
        )
    columns[0].set_ylabel("positions (%)")
    style.one_legend(figure, columns, 3)
    style.note(figure, CLOSER)
    return figure


def interpolation(results: Results) -> Figure:
    """Figure 2: what interpolation and extrapolation do to positions.

    Extrapolation reaches positions that pre-training never saw, interpolation angles between those
    that it saw. An illustration of one pair, drawn from the definition.
    """
    _check_geometry(results)
    theta = 2 * np.pi / 9
    length = 12
    longer = np.arange(FACTOR * length)
    curve = np.linspace(0, FACTOR * length, 600)
    between = longer[longer % FACTOR != 0] / FACTOR
    seen, unseen = np.split(longer, [length])
    above = "extrapolation: position m, angle m·θ"
    below = "interpolation: position m, angle m·θ/s"
    panels = [
        (above, curve, "unseen position", unseen, "s", "#0072B2", 3.5),
        (below, curve / FACTOR, "unseen angle", between, "x", "#D55E00", 4),
    ]
    figure, rows = plt.subplots(2, 1, figsize=(style.COLUMN, 3.4), sharex=True)
    for axes, (title, line, label, positions, marker, color, size) in zip(rows, panels):
        axes.plot(line, np.cos(line * theta), color="#bbbbbb", linewidth=0.8)
        axes.plot(seen, np.cos(seen * theta), "o", color="#009E73", ms=4, label="pre-trained")
        axes.plot(positions, np.cos(positions * theta), marker, color=color, ms=size, label=label)
        axes.axvline(length - 0.5, color="black", linewidth=0.8, linestyle=":")
        axes.set(title=title, ylabel="cos of the angle", ylim=(-1.35, 1.35))
        axes.set_xticks([0, length, FACTOR * length], ["0", "L", "L′ = 2L"])
        axes.grid(visible=False)
    axes.set_xlabel("position index that the rotation stands for")
    style.one_legend(figure, rows, 3)
    style.title(figure, "What interpolation and extrapolation do to positions (an illustration)")
    style.note(figure, "One pair of θ = 2π/9, L = 12, s = 2. Nothing is measured.")
    return figure


def frequency(results: Results) -> Figure:
    """Figure 3: angles of pairs 6 and 22, first 24 intervals.

    Interpolation keeps the distribution of pair 6, extrapolation that of pair 22: its bars are as
    high as the grey ones.
    """
    shown = 24
    frequencies = _frequencies(results)
    figure, rows = plt.subplots(2, 1, figsize=(style.COLUMN, 3.8), sharex=True)
    for axes, pair in zip(rows, (6, 22)):
        for offset, (name, colour) in zip((-0.3, 0, 0.3), COLOURS.items()):
            places = np.arange(shown) + offset
            heights = frequencies[name][pair, :shown]
            axes.bar(places, heights, width=0.3, color=colour, label=name)
        title = f"pair {pair}, disturbance:\n{_disturbances(results, pair)}"
        axes.set(title=title, ylabel="positions (%)")
        axes.grid(axis="x", visible=False)
    axes.set_xlabel(f"interval k of b = {INTERVALS} (width {360 / INTERVALS:g}°)")
    style.one_legend(figure, rows, 3)
    style.note(
        figure,
        "A bar: share of the positions whose angle falls into the interval. As high as the grey "
        f"one is what the paper aims at. {LENGTHS}",
    )
    return figure


def distribution_complete(results: Results) -> Figure:
    """Figure 6: angles of pairs 6 and 22, all intervals.

    Interpolation follows the pre-trained distribution (grey) of pair 6, extrapolation that of pair
    22.
    """
    frequencies = _frequencies(results)
    figure, rows = plt.subplots(4, 1, figsize=(style.PAGE, 5.0), sharex=True)
    panels = itertools.product((6, 22), ("interpolated", "extrapolated"))
    for axes, (pair, strategy) in zip(rows, panels):
        _steps(axes, frequencies, pair, strategy)
        moved = f"disturbance {_disturbance(results, pair, strategy)}"
        axes.set(title=f"pair {pair}, {strategy}: {moved}", ylim=(0, None))
    figure.supylabel("positions (%)")
    axes.set(xlabel=f"interval k of b = {INTERVALS}", xlim=(0, INTERVALS))
    style.one_legend(figure, rows, 3)
    style.note(figure, CLOSER)
    return figure


def _check_geometry(results: Results) -> None:
    """NotMeasured for a model of another geometry than the paper's."""
    if results.geometry != published.GEOMETRY:
        raise NotMeasured(
            "the paper shows angles of its own models' geometry, which "
            f"{results.name} does not have; `python -m figures --model llama2-7b` draws them."
        )


def _frequencies(results: Results) -> Frequencies:
    """How each pair's angles are distributed within L, and within L' under both strategies."""
    _check_geometry(results)
    theta = results.geometry.inv_freq
    length = results.geometry.context_length
    return {
        "pre-trained": 100 * distribution(theta, length, INTERVALS),
        "interpolated": 100 * distribution(theta / FACTOR, FACTOR * length, INTERVALS),
        "extrapolated": 100 * distribution(theta, FACTOR * length, INTERVALS),
    }


def _disturbances(results: Results, pair: int) -> str:
    """Of both strategies, as a title prints them."""
    return ", ".join(
        f"{strategy} {_disturbance(results, pair, strategy)}"
        for strategy in ("interpolated", "extrapolated")
    )


def _disturbance(results: Results, pair: int, strategy: str) -> str:
    method = {"interpolated": rope.TIME_REFERENCE, "extrapolated": rope.ORIGINAL}[strategy]
    per_pair = disturbance.compute(results.geometry, Setting(method, (), FACTOR)).per_pair
    return f"{per_pair[pair]:.2g} nat"


def _steps(axes: Axes, frequencies: Frequencies, pair: int, *strategies: str) -> None:
    """A line for each strategy, over the pre-trained area."""
    label = "pre-trained"
    axes.stairs(frequencies[label][pair], fill=True, color="#cccccc", label=label)
    for name in strategies:
        axes.stairs(frequencies[name][pair], color=COLOURS[name], linewidth=0.8, label=name)
