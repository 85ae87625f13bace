"""Other rules for which pairs to divide, by the disturbance or by the wavelength."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from ... import BASELINE, ORIGINAL, TIME_REFERENCE
from ...angles import angle_distribution
from ...disturbance import disturbance, strategy_disturbance
from ...errors import InputError, check_whole
from ...geometry import RopeGeometry, RopeScaling
from ...methods.paper import interpolate, yarn_attention_factor
from ...methods.registry import METHODS, register

CANDIDATES = (ORIGINAL, TIME_REFERENCE, "ntk", BASELINE)


@register(
    "dprope-candidates",
    "DPRoPE, candidates",
    by_disturbance=True,
    styles=(("#332288", (0, (5, 3))),),
)
def dprope_candidates(
    geometry: RopeGeometry,
    factor: float,
    *,
    intervals: int = 360,
    convention: str = "released",
    attention_factor: float = 1.0,
) -> RopeScaling:
    """For each pair, the inverse frequency of whichever candidate method disturbs its angle
    distribution least.

    The candidates are no scaling, PI, NTK-aware scaling and YaRN; the first wins a tie. The
    released code has such a list, while the paper's equation has only extrapolation and PI.

    Args:
        intervals, convention, attention_factor: as for `dprope`.
    """
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length, intervals)
    longer = round(geometry.context_length * factor)
    # [methods, pairs]
    offered = np.stack([METHODS[name].scale(geometry, factor).inv_freq for name in CANDIDATES])
    moved = [
        disturbance(angle_distribution(theta, longer, intervals), pretrained, convention)
        for theta in offered
    ]
    inv_freq = offered[np.argmin(moved, axis=0), np.arange(geometry.pairs)]
    interpolated = np.isclose(inv_freq, geometry.inv_freq / factor, rtol=1e-12)
    return RopeScaling(inv_freq, attention_factor, interpolated)


@register(
    "dprope-significant",
    "DPRoPE, significant",
    by_disturbance=True,
    styles=(("#777777", (0, (7, 1.5))),),
)
def dprope_significant(
    geometry: RopeGeometry,
    factor: float,
    *,
    level: float = 0.05,
    intervals: int = 360,
    convention: str = "released",
    attention_factor: float = 1.0,
) -> RopeScaling:
    """DPRoPE with a threshold for each pair: interpolate where the margin D_E − D_I exceeds its own
    noise.

    A pair is interpolated if finite counts alone would give so large a margin (see
    :func:`margin_noise`) with a probability below `level` / pairs, by a one-sided normal test. Over
    all pairs together that probability is at most `level`.

    Args:
        level: the largest acceptable probability that noise alone interpolates any pair.
        intervals, convention, attention_factor: as for `dprope`.
    """
    if not 0 < level < 1 or level / geometry.pairs == 0:
        raise InputError(f"the level is {level}; give a probability between 0 and 1, such as 0.05.")
    interpolation, extrapolation = strategy_disturbance(
        geometry.inv_freq, geometry.context_length, factor, intervals, convention
    )
    occupied = np.count_nonzero(
        angle_distribution(geometry.inv_freq, geometry.context_length, intervals), axis=1
    )
    noise = margin_noise(geometry.context_length, round(geometry.context_length * factor), occupied)
    critical = -NormalDist().inv_cdf(level / geometry.pairs)
    return interpolate(
        geometry, factor, extrapolation - interpolation > critical * noise, attention_factor
    )


def margin_noise(length: int, longer: int, occupied: ArrayLike) -> np.ndarray:
    """The standard deviation of the margin D_E − D_I that comes from finite counts alone, in nats.

    Suppose a pair's angles follow one distribution π_1 … π_k at every context length. The three
    histograms are then estimates of it. Pre-training's has L draws. The two at L' contain those L
    draws (interpolation by s shows the pre-trained angles at every s-th position) and N = L' − L
    further ones each. Let a be the deviations of pre-training's frequencies, and e and i those of
    the further draws of extrapolation and interpolation. To second order in them,

        D_E − D_I = ½ (N/L')² Σ_j [(e_j − a_j)² − (i_j − a_j)²] / π_j,

    whose terms, with variances π/N and π/L, give Var = k (N/L')⁴ (1/N² + 2/(NL)). It depends on
    neither π nor the direction of the KL.

    Args:
        length, longer: L and L', in tokens.
        occupied: k, the number of intervals that pre-training reaches, per pair; k − 1 enters,
            because Σ a = 0.

    Returns:
        float64 array of `occupied`'s shape.
    """
    new = longer - length
    degrees = np.maximum(np.asarray(occupied, dtype=np.float64) - 1, 1)
    return (new / longer) ** 2 * np.sqrt(degrees * (1 / new**2 + 2 / (new * length)))


@register(
    "dprope-covered",
    "YaRN without blend",
    styles=(("#661100", (0, (3, 1))), ("#9977BB", (0, (1, 1.5)))),
)
def dprope_covered(
    geometry: RopeGeometry,
    factor: float,
    *,
    covered_length: int | None = None,
    attention_factor: float | None = None,
) -> RopeScaling:
    """YaRN without its blend: divide what is slower than the context, λ_i > L, and keep the rest.

    It is YaRN with a blend of no width, α = β = 1, and YaRN's attention factor. A pair of
    wavelength λ_i > L does not turn a full circle in pre-training, so extrapolation would show it
    angles that were never seen. For these pairs alone the disturbance exceeds its noise by orders
    of magnitude.

    Args:
        covered_length: the length that pre-training really covered, in place of L.
        attention_factor: by default YaRN's 0.1·ln s + 1.
    """
    longest = geometry.context_length
    length = (
        longest
        if covered_length is None
        else check_whole(covered_length, "the covered length", 1, longest)
    )
    if attention_factor is None:
        attention_factor = yarn_attention_factor(factor)
    return interpolate(geometry, factor, geometry.wavelength > length, attention_factor)
