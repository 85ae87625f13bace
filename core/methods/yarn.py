"""YaRN, the strongest of the methods that the paper compares with."""

from __future__ import annotations

import numpy as np

from ..errors import InputError, check_choice
from ..geometry import RopeGeometry, RopeScaling
from ..roles import BASELINE
from .registry import register


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
            "original_max_position_embeddings": int(geometry.context_length),
            "beta_fast": float(beta_fast),
            "beta_slow": float(beta_slow),
        }
    temperature = yarn_temperature(factor) if attention_factor is None else attention_factor
    return RopeScaling(inv_freq, temperature, weight == 1, stock=stock)


def yarn_temperature(factor: float) -> float:
    """YaRN's √(1/t) = 0.1·ln s + 1 (Peng et al. 2023, equation 22)."""
    return 0.1 * float(np.log(factor)) + 1


def yarn_limits(
    geometry: RopeGeometry, beta_fast: float = 32.0, beta_slow: float = 1.0
) -> tuple[int, int]:
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
