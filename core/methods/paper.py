"""The methods that the paper compares: none, PI, YaRN, CLEX, and its own.

They stand in the order of its tables.
"""

import os

import numpy as np

from .. import BASELINE, ORIGINAL, PROPOSED, TIME_REFERENCE
from ..disturbance import select_interpolated, strategy_disturbance
from ..errors import InputError, check_choice
from ..geometry import RopeGeometry, RopeScaling
from .registry import register


@register(ORIGINAL, "original", styles=(("#000000", (0, (1, 1))),))
def original(
    geometry: RopeGeometry, factor: float, *, attention_factor: float = 1.0
) -> RopeScaling:
    """No scaling: plain extrapolation to L'.

    Args:
        attention_factor: YaRN's √(1/t) without its pairs: what it changes is not about extending.
    """
    stock = {"rope_type": "default"} if attention_factor == 1 else None
    none = np.zeros(geometry.pairs, dtype=bool)
    return interpolate(geometry, factor, none, attention_factor, stock)


@register(TIME_REFERENCE, "PI", published=True, styles=(("#E69F00", "--"),))
def position_interpolation(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """Position interpolation, θ/s for every pair (Chen et al. 2023; paper, section 2.2)."""
    stock = {"rope_type": "linear", "factor": factor}
    return interpolate(geometry, factor, np.ones(geometry.pairs, dtype=bool), stock=stock)


@register(BASELINE, "YaRN", published=True, styles=(("#0072B2", "-."),))
def yarn(
    geometry: RopeGeometry,
    factor: float,
    *,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "index",
    attention_factor: float | None = None,
) -> RopeScaling:
    """YaRN (Peng et al. 2023): keep pairs with many rotations within L, interpolate those with few,
    blend between.

    The number of rotations is r_i = L/λ_i.

    Args:
        beta_fast: β; pairs with more than β rotations within L are kept.
        beta_slow: α; pairs with fewer than α rotations within L are interpolated.
        ramp: "index" blends linearly in the pair index between whole-number limits, as the official
            code does; "rotations" blends linearly in r_i, the number of rotations, as the
            reproduced paper prints it (equation 4).
        attention_factor: √(1/t), which multiplies both queries and keys; without it YaRN takes
            0.1·ln s + 1.
    """
    check_choice(ramp, "YaRN ramp", ("index", "rotations"))
    low, high = yarn_limits(geometry, beta_fast, beta_slow)
    if ramp == "index":
        # The official code widens an empty ramp by 0.001 to divide by it.
        weight = (np.arange(geometry.pairs) - low) / (high - low if high != low else 1e-3)
    else:
        rotations = geometry.context_length / geometry.wavelength
        weight = (beta_fast - rotations) / (beta_fast - beta_slow)
    weight = np.clip(weight, 0, 1)
    inv_freq = geometry.inv_freq * (1 - weight) + geometry.inv_freq / factor * weight
    # Engines that read the stock type compute s as L'/L and the attention factor from s; they know
    # no other ramp.
    longer = geometry.context_length * factor
    stock = None
    if ramp == "index" and attention_factor is None and longer.is_integer():
        stock = {
            "rope_type": "yarn",
            "factor": factor,
            "original_max_position_embeddings": geometry.context_length,
            "beta_fast": float(beta_fast),
            "beta_slow": float(beta_slow),
        }
    if attention_factor is None:
        attention_factor = yarn_attention_factor(factor)
    return RopeScaling(inv_freq, attention_factor, weight == 1, stock=stock)


def yarn_attention_factor(factor: float) -> float:
    """YaRN's √(1/t) = 0.1·ln s + 1 (Peng et al. 2023, equation 22)."""
    return 0.1 * float(np.log(factor)) + 1


def yarn_limits(geometry: RopeGeometry, beta_fast: float, beta_slow: float) -> tuple[int, int]:
    """The pairs between which YaRN's official code blends: whole-number limits around r_i = β and
    r_i = α rotations.

    Raises:
        InputError: not 0 < α < β.
    """
    if not 0 < beta_slow < beta_fast:
        raise InputError(
            f"beta_slow and beta_fast are {beta_slow} and {beta_fast}; give 0 < beta_slow < "
            f"beta_fast."
        )

    low = max(np.floor(geometry.index_of(beta_fast)), 0)
    high = min(np.ceil(geometry.index_of(beta_slow)), geometry.head_dim - 1)
    return int(low), int(high)


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
