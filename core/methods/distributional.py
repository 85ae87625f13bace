"""Methods that use the rotary angles seen in pre-training: the paper's own, and ours that build on it."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from ..angles import angle_distribution
from ..disturbance import disturbance, margin_noise, select_interpolated, strategy_disturbance
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..rope import COVERED, NTK, ORIGINAL, OURS, OURS_BY_NOISE, RIVAL, UNIT, get, register, scale
from .parts import interpolate, positive, yarn_temperature


@register(
    OURS,
    "DPRoPE",
    published=True,
    styles=(("#D55E00", "-"), ("#56B4E9", (0, (4, 1)))),
    variants=({"candidates": (ORIGINAL, UNIT, NTK, RIVAL)},),
)
def dprope(
    geometry: RopeGeometry,
    factor: float,
    *,
    threshold: float = 0.0,
    n_hat: int | None = None,
    intervals: int = 360,
    convention: str = "released",
    candidates: tuple[str, ...] = (),
    attention_factor: float = 1.0,
) -> RopeScaling:
    """The paper's method: interpolate the pairs that interpolation disturbs less than extrapolation (equation 8).

    Args:
        threshold: t, in nats; a pair is interpolated if extrapolation disturbs it by more than t more (D_E > D_I + t).
        n_hat: n̂, the number of dimensions to interpolate; cannot be combined with a threshold.
        intervals: b, the number of intervals of the histogram.
        convention: "released" or "equation", the direction of the divergence; see :mod:`core.disturbance`.
        candidates: names of methods; each pair takes the least disturbing one, the first in a tie. The released code
            has such a list, while the paper's equation has only extrapolation and PI. Cannot be combined with t or n̂.
        attention_factor: YaRN's attention temperature √(1/t); the paper's method has none, which is 1.
    """
    if candidates:
        if threshold != 0.0 or n_hat is not None:
            raise InputError("candidates were given along with t or n̂; give one of them.")
        return _least_disturbing(geometry, factor, candidates, intervals, convention, attention_factor)
    interpolation, extrapolation = strategy_disturbance(
        geometry.inv_freq, geometry.context_length, factor, intervals, convention
    )
    chosen = select_interpolated(interpolation, extrapolation, threshold, n_hat)
    return interpolate(geometry, factor, chosen, attention_factor)


def _least_disturbing(
    geometry: RopeGeometry,
    factor: float,
    candidates: tuple[str, ...],
    intervals: int,
    convention: str,
    attention_factor: float,
) -> RopeScaling:
    """For each pair, the inverse frequency of the candidate method that disturbs its angle distribution least."""
    if needy := [name for name in candidates if not get(name).ready]:
        raise InputError(f"the candidate {needy[0]!r} needs more than its name (options or training); choose others.")
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length, intervals)
    longer = round(geometry.context_length * factor)
    offered = np.stack([scale(geometry, name, factor).inv_freq for name in candidates])  # [candidates, pairs]
    moved = [disturbance(angle_distribution(own, longer, intervals), pretrained, convention) for own in offered]
    chosen = offered[np.argmin(moved, axis=0), np.arange(geometry.pairs)]
    interpolated = np.isclose(chosen, geometry.inv_freq / factor, rtol=1e-12)
    return RopeScaling(chosen, positive(attention_factor), interpolated)


@register(OURS_BY_NOISE, "DPRoPE, significant", styles=(("#777777", (0, (7, 1.5))),))
def dprope_significant(
    geometry: RopeGeometry,
    factor: float,
    *,
    level: float = 0.05,
    intervals: int = 360,
    convention: str = "released",
    attention_factor: float = 1.0,
) -> RopeScaling:
    """DPRoPE without a threshold or n̂ set by hand: interpolate where the margin D_E − D_I exceeds its own noise.

    A pair is interpolated if finite counts alone would give so large a margin (see
    :func:`core.disturbance.margin_noise`) with a probability below `level` / pairs, by a one-sided normal test. Over
    all pairs together that probability is at most `level`.

    Args:
        level: the largest acceptable probability that noise alone interpolates any pair.
        intervals, convention, attention_factor: as for `dprope`.
    """
    if not 0 < level < 1:
        raise InputError(f"the level is {level}; give a probability between 0 and 1, such as 0.05.")
    interpolation, extrapolation = strategy_disturbance(
        geometry.inv_freq, geometry.context_length, factor, intervals, convention
    )
    occupied = np.count_nonzero(angle_distribution(geometry.inv_freq, geometry.context_length, intervals), axis=1)
    noise = margin_noise(geometry.context_length, round(geometry.context_length * factor), occupied)
    critical = -ndtri(level / geometry.pairs)
    return interpolate(geometry, factor, extrapolation - interpolation > critical * noise, attention_factor)


@register(COVERED, "DPRoPE, covered", styles=(("#661100", (0, (3, 1))), ("#999933", (0, (1, 1.5)))))
def dprope_covered(
    geometry: RopeGeometry, factor: float, *, covered_length: int | None = None, attention_factor: float | None = None
) -> RopeScaling:
    """DPRoPE with nothing set by hand: interpolate the pairs that do not turn a full circle in pre-training, λ_i > L.

    Here λ_i is the wavelength. Extrapolation would show these pairs angles that were never seen, and only for them does
    the disturbance exceed its noise by orders of magnitude. The attention factor is YaRN's.

    Args:
        covered_length: the length that pre-training really covered; by default L.
        attention_factor: by default YaRN's 0.1·ln s + 1.
    """
    length = geometry.context_length if covered_length is None else covered_length
    if not 1 <= length <= geometry.context_length:
        raise InputError(
            f"the covered length is {length}; give a whole number from 1 to L = {geometry.context_length}."
        )
    if attention_factor is None:
        attention_factor = yarn_temperature(factor)
    return interpolate(geometry, factor, geometry.wavelength > length, attention_factor)
