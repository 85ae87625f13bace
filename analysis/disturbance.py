"""The disturbance of each setting at L' (the paper's Table 3, Figures 7 and 8). It is mathematics: nothing is measured.

It follows from a geometry alone and takes a few milliseconds, so it is computed where it is shown.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from analysis import published
from analysis.results import Results
from analysis.settings import Setting
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution
from core.geometry import RopeGeometry
from core.released_code import angle_distribution_float32, inv_freq_float32

# How the disturbance is counted: (precision, convention).
Way = tuple[str, str]
FLOAT32, FLOAT64, EQUATION = ("float32", "released"), ("float64", "released"), ("float64", "equation")
WAYS: tuple[Way, ...] = (FLOAT32, FLOAT64, EQUATION)


@dataclass(frozen=True)
class Disturbance:
    """A setting's disturbance in nats [pairs], and the number of dimensions that are divided by s."""

    per_pair: np.ndarray
    interpolated: int

    @property
    def average(self) -> float:
        """The mean over pairs, in 10⁻³ nat."""
        return 1e3 * float(self.per_pair.mean())


@functools.cache
def of(geometry: RopeGeometry, setting: Setting, way: Way = FLOAT64) -> Disturbance | None:
    """A setting's disturbance; None for a method whose frequencies follow from more than the geometry."""
    precision, convention = way
    options = {name: value for name, value in setting.options if name != "attention_factor"}  # which turns no angle
    if setting.method == rope.PROPOSED and not set(options) - {
        "threshold",
        "n_hat",
    }:  # chooses by this way's disturbances
        theta = geometry.inv_freq
        interpolation, extrapolation = (
            _moved(geometry, each, setting.factor, way) for each in (theta / setting.factor, theta)
        )
        chosen = kl.select_interpolated(interpolation, extrapolation, **options)
        return Disturbance(np.where(chosen, interpolation, extrapolation), 2 * int(chosen.sum()))
    if "convention" in rope.method_options(setting.method):
        options["convention"] = convention
    scaling = replace(setting, options=tuple(options.items())).scaling(geometry)
    if scaling is None:
        return None
    divided = np.isclose(geometry.inv_freq / scaling.inv_freq, setting.factor)
    return Disturbance(_moved(geometry, scaling.inv_freq, setting.factor, way), 2 * int(divided.sum()))


def _moved(geometry: RopeGeometry, inv_freq: np.ndarray, factor: float, way: Way) -> np.ndarray:
    """The disturbance by these inverse frequencies, in nats [pairs]; in float32 rounded as the released code rounds."""
    precision, convention = way
    theta, pretrained = _pretrained(geometry, precision)
    longer = round(geometry.context_length * factor)
    if precision == "float64":
        return kl.disturbance(angle_distribution(inv_freq, longer), pretrained, convention)
    extended = angle_distribution_float32(theta / (geometry.inv_freq / inv_freq).astype(np.float32), longer)
    return kl.disturbance(extended, pretrained, convention, epsilon=0.0)


@functools.cache
def _pretrained(geometry: RopeGeometry, precision: str) -> tuple[np.ndarray, np.ndarray]:
    """θ [pairs] and P_L [pairs, intervals]."""
    released = precision == "float32"
    theta = inv_freq_float32(geometry) if released else geometry.inv_freq
    return theta, (angle_distribution_float32 if released else angle_distribution)(theta, geometry.context_length)


def settings(results: Results, factor: float) -> list[Setting]:
    """Every method that needs no training, and DPRoPE at the paper's n̂."""
    ready = [Setting(name, (), factor) for name, method in rope.METHODS.items() if method.ready]
    n_hat = results.model.n_hat.get(factor)
    return sorted(
        ready + [Setting(rope.PROPOSED, (("n_hat", n_hat),), factor)] * bool(n_hat), key=lambda each: each.order
    )


def deviations(geometry: RopeGeometry, way: Way) -> list[float]:
    """How far the disturbances that the paper prints are from the computed ones, each as a share of its own."""
    printed = published.disturbance().items()
    return [
        abs(of(geometry, Setting(method, (), factor), way).average / value - 1) for (method, factor), value in printed
    ]


def averaged(results: Results, setting: Setting) -> float | None:
    """A setting's disturbance averaged over pairs, in nats; None for a learned method, or one that is not registered."""
    found = of(results.model.geometry, setting) if setting.method in rope.METHODS else None
    return None if found is None else found.average / 1e3
