"""CLEX, which needs training."""

from __future__ import annotations

import os

from ..geometry import RopeGeometry, RopeScaling
from .registry import register


def _start_clex(model, geometry: RopeGeometry, factor: float):
    from .. import clex  # imports torch, which tables and figures do not need

    geometry.check_base()  # it starts from NTK-aware scaling
    return clex.install(model, geometry, factor)


@register(
    "clex",
    "CLEX",
    published=True,
    start=_start_clex,
    styles=(("#CC79A7", (0, (3, 1, 1, 1, 1, 1))),),
)
def clex(
    geometry: RopeGeometry, factor: float, *, weights: str | os.PathLike | None = None
) -> RopeScaling:
    """CLEX (Chen et al. 2023) at t = ⌈s⌉; in a model, the scale follows the input's length, see
    core/clex.

    Args:
        weights: the trained neural ODE: a file clex.safetensors, or a directory that holds one.
    """
    from ..clex import from_weights  # imports torch, which tables and figures do not need

    geometry.check_base()
    return from_weights(geometry, factor, weights)
