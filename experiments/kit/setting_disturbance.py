"""The disturbance of a method's setting at L', per pair; it follows from a geometry alone, and no
weights are read."""

from __future__ import annotations

import functools

import numpy as np

from core import rope
from core.angles import angle_distribution
from core.disturbance import EPSILON, disturbance, select_interpolated
from core.geometry import RopeGeometry
from core.released_code import angle_distribution_float32, inv_freq_float32


def per_pair(
    geometry: RopeGeometry,
    method: str,
    factor: float,
    options: dict,
    precision: str = "float64",
    convention: str = "released",
) -> tuple[np.ndarray, int]:
    """The disturbance of each pair in nats, float64 [pairs], and how many dimensions are divided by
    s.

    A method that chooses by disturbances chooses by those that are counted in the same way.

    Args:
        options: the method's.
        precision: "float64" counts exactly, "float32" as the released code does, without ε.
        convention: "released" or "equation", as for :func:`core.disturbance.disturbance`.

    Raises:
        InputError: there is no such method, or an option or the factor is out of range.
    """
    stock = method == rope.PROPOSED and not options.keys() - {
        "threshold",
        "n_hat",
    }  # b, its count and its convention
    if "convention" in rope.method_options(method) and not stock:
        options = {"convention": convention} | options
    scaling = rope.scale(geometry, method, factor, **options)
    longer = round(geometry.context_length * factor)

    def of(inv_freq: np.ndarray) -> np.ndarray:
        return _disturbance(geometry, inv_freq, longer, precision, convention)

    if stock:
        interpolation, extrapolation = of(geometry.inv_freq / factor), of(geometry.inv_freq)
        chosen = select_interpolated(interpolation, extrapolation, **options)
        return np.where(chosen, interpolation, extrapolation), 2 * int(chosen.sum())
    return of(scaling.inv_freq), 2 * int(scaling.interpolated.sum())


def _disturbance(
    geometry: RopeGeometry, inv_freq: np.ndarray, length: int, precision: str, convention: str
) -> np.ndarray:
    """The disturbance at `length` by these inverse frequencies, in nats [pairs]."""
    if precision == "float64":
        pretrained = _histogram(precision, tuple(geometry.inv_freq), geometry.context_length)
        return disturbance(
            _histogram(precision, tuple(inv_freq), length), pretrained, convention, EPSILON
        )
    # The released code rounds θ first, and then divides it.
    trained = inv_freq_float32(geometry)
    with np.errstate(divide="ignore"):  # a frequency of 0 is θ divided by infinity
        divisors = (geometry.inv_freq / inv_freq).astype(np.float32)
    extended = _histogram(precision, tuple(trained / divisors), length)
    pretrained = _histogram(precision, tuple(trained), geometry.context_length)
    return disturbance(extended, pretrained, convention, 0.0)


@functools.cache  # several methods and both conventions share histograms
def _histogram(precision: str, inv_freq: tuple[float, ...], length: int) -> np.ndarray:
    count = angle_distribution_float32 if precision == "float32" else angle_distribution
    return count(np.array(inv_freq), length)
