"""Methods that are learned in a model, and cannot be had without training."""

from __future__ import annotations

import os

from ..geometry import RopeGeometry, RopeScaling
from ..rope import register


def _start_clex(model, geometry: RopeGeometry, factor: float):
    from .. import clex  # needs torch, which tables and figures do without

    return clex.install(model, geometry, factor)


@register("clex", "CLEX", published=True, start=_start_clex, styles=(("#CC79A7", (0, (3, 1, 1, 1, 1, 1))),))
def clex(geometry: RopeGeometry, factor: float, *, weights: str | os.PathLike | None = None) -> RopeScaling:
    """CLEX (Chen et al. 2023) at t = ⌈s⌉; in a model, the scale follows the input's length, see :mod:`core.clex`.

    Args:
        weights: the trained neural ODE: a clex.safetensors, or a directory that holds one.
    """
    from ..clex import scaling  # needs torch, which tables and figures do without

    return scaling(geometry, factor, weights)
