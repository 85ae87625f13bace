"""Drawing the angle distributions of single pairs: pre-trained, interpolated and extrapolated."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from analysis import published
from analysis.results import NotMeasured, Results
from core.angles import angle_distribution

COLOURS = {"pretrained": "#999999", "interpolated": "#E69F00", "extrapolated": "#0072B2"}
# b and s of the paper's figures
INTERVALS = 360
FACTOR = 2


@dataclass(frozen=True)
class PairAngles:
    """The angles of one pair.

    Attributes:
        pair: its index.
        wavelength: in tokens.
        frequency: F_k, the per cent of positions in each interval [intervals], by a name of
            COLOURS.
    """

    pair: int
    wavelength: float
    frequency: dict[str, np.ndarray]


def check_geometry(results: Results) -> None:
    """NotMeasured for a model of another geometry than the paper's: its figures show single pairs
    of that one."""
    if results.model.geometry != published.GEOMETRY:
        raise NotMeasured(
            f"the paper shows angles of its own models' geometry, which {results.model.name} does "
            f"not have; "
            "`python -m figures --model llama2-7b` draws them."
        )


def pair_angles(results: Results, pairs: tuple[int, ...]) -> list[PairAngles]:
    """How a pair's angles are distributed within L, and within L' under both strategies."""
    check_geometry(results)
    geometry = results.model.geometry
    theta = geometry.inv_freq[list(pairs)]
    length = geometry.context_length
    by_strategy = {
        "pretrained": angle_distribution(theta, length, INTERVALS),
        "interpolated": angle_distribution(theta / FACTOR, FACTOR * length, INTERVALS),
        "extrapolated": angle_distribution(theta, FACTOR * length, INTERVALS),
    }
    return [
        PairAngles(
            pair,
            geometry.wavelength[pair],
            {name: 100 * rows[row] for name, rows in by_strategy.items()},
        )
        for row, pair in enumerate(pairs)
    ]


def steps(
    axes: Axes,
    angles: PairAngles,
    intervals: int,
    names: tuple[str, ...] = ("extrapolated", "interpolated"),
) -> None:
    """Step lines over the pre-trained area, for many intervals."""
    edges = np.arange(intervals + 1)
    pretrained = angles.frequency["pretrained"][:intervals]
    axes.stairs(pretrained, edges, fill=True, color="#cccccc", label="pre-trained")
    for name in names:
        axes.stairs(
            angles.frequency[name][:intervals],
            edges,
            color=COLOURS[name],
            linewidth=0.8,
            label=name,
        )
