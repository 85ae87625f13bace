"""Scalings from what a method decides for each pair."""

from __future__ import annotations

import numpy as np

from ..geometry import RopeGeometry, RopeScaling


def interpolate(
    geometry: RopeGeometry,
    factor: float,
    chosen: np.ndarray,
    attention_factor: float = 1.0,
    stock: dict | None = None,
) -> RopeScaling:
    """θ/s where chosen (bool [pairs]), θ elsewhere; the default attention factor changes
    nothing."""
    inv_freq = np.where(chosen, geometry.inv_freq / factor, geometry.inv_freq)
    return RopeScaling(inv_freq, attention_factor, chosen, stock=stock)


def divide(
    geometry: RopeGeometry, factor: float, by: np.ndarray, attention_factor: float
) -> RopeScaling:
    """θ_i/λ_i for factors λ_i, float64 [pairs]."""
    return RopeScaling(geometry.inv_freq / by, attention_factor, by == factor)
