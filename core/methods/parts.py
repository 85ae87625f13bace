"""Functions that several methods share."""

from __future__ import annotations

import numpy as np

from ..errors import InputError, is_finite
from ..geometry import RopeGeometry, RopeScaling


def interpolate(
    geometry: RopeGeometry,
    factor: float,
    chosen: np.ndarray,
    attention_factor: float = 1.0,
    stock: dict | None = None,
) -> RopeScaling:
    """θ/s where chosen (bool [pairs]), θ elsewhere; the default attention factor changes nothing."""
    inv_freq = np.where(chosen, geometry.inv_freq / factor, geometry.inv_freq)
    return RopeScaling(inv_freq, positive(attention_factor), chosen, stock=stock)


def divide(
    geometry: RopeGeometry, factor: float, by: np.ndarray, attention_factor: float, stock: dict | None = None
) -> RopeScaling:
    """θ_i/λ_i for factors λ_i, float64 [pairs]."""
    return RopeScaling(geometry.inv_freq / by, positive(attention_factor), by == factor, stock=stock)


def positive(attention_factor: float) -> float:
    """The attention factor as a float; InputError unless it is a positive finite number."""
    if not is_finite(attention_factor) or attention_factor <= 0:
        raise InputError(f"the attention factor is {attention_factor}; give a positive number, such as 1.07.")
    return float(attention_factor)


def yarn_temperature(factor: float) -> float:
    """YaRN's √(1/t) = 0.1·ln s + 1 (Peng et al. 2023, equation 22)."""
    return 0.1 * float(np.log(factor)) + 1


def yarn_limits(geometry: RopeGeometry, beta_fast: float = 32.0, beta_slow: float = 1.0) -> tuple[int, int]:
    """The pairs between which YaRN's official code blends: whole-number limits around r_i = β and r_i = α rotations."""

    def index_of(rotations: float) -> float:
        """The (real) pair index at which r_i = rotations."""
        span = np.log(geometry.context_length / (2 * np.pi * rotations))
        return geometry.head_dim * span / (2 * np.log(geometry.base))

    low = max(np.floor(index_of(beta_fast)), 0)
    high = min(np.ceil(index_of(beta_slow)), geometry.head_dim - 1)
    return int(low), int(high)
