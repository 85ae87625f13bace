"""The paper's method: extension by the distribution of rotary angles."""

from __future__ import annotations

from ..disturbance import select_interpolated, strategy_disturbance
from ..geometry import RopeGeometry, RopeScaling
from ..roles import PROPOSED
from .per_pair import interpolate
from .registry import register


@register(
    PROPOSED,
    "DPRoPE",
    published=True,
    by_disturbance=True,
    styles=(
        ("#D55E00", "-"),
        ("#882255", (0, (4, 1))),
        ("#993404", (0, (6, 1))),
        ("#DDCC77", (0, (10, 1, 2, 1))),
        ("#EE99AA", (0, (4, 1, 1, 1))),
    ),
)
def dprope(
    geometry: RopeGeometry,
    factor: float,
    *,
    threshold: float = 0.0,
    n_hat: int | None = None,
    intervals: int = 360,
    convention: str = "released",
    attention_factor: float = 1.0,
) -> RopeScaling:
    """The paper's method: interpolate the pairs that interpolation disturbs less than extrapolation
    (equation 8).

    Args:
        threshold: t, in nats; a pair is interpolated if extrapolation disturbs it by more than t
            more (D_E > D_I + t).
        n_hat: n̂, the number of dimensions to interpolate; cannot be combined with a threshold.
        intervals: b, the number of intervals of the histogram.
        convention: "released" or "equation", the direction of the divergence; see
            core/disturbance.py.
        attention_factor: YaRN's √(1/t); the paper's method has none, which is 1.
    """
    interpolation, extrapolation = strategy_disturbance(
        geometry.inv_freq, geometry.context_length, factor, intervals, convention
    )
    chosen = select_interpolated(interpolation, extrapolation, threshold, n_hat)
    return interpolate(geometry, factor, chosen, attention_factor)
