"""Position interpolation, and no scaling at all."""

from __future__ import annotations

import numpy as np

from ..geometry import RopeGeometry, RopeScaling
from ..roles import ORIGINAL, TIME_REFERENCE
from .per_pair import interpolate
from .registry import register


@register(ORIGINAL, "original", styles=(("#000000", (0, (1, 1))),))
def original(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """No scaling: plain extrapolation to L'."""
    return interpolate(
        geometry, factor, np.zeros(geometry.pairs, dtype=bool), stock={"rope_type": "default"}
    )


@register(TIME_REFERENCE, "PI", published=True, styles=(("#E69F00", "--"),))
def position_interpolation(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """Position interpolation, θ/s for every pair (Chen et al. 2023; paper, section 2.2)."""
    stock = {"rope_type": "linear", "factor": factor}
    return interpolate(geometry, factor, np.ones(geometry.pairs, dtype=bool), stock=stock)
