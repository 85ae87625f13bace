"""Methods that look at the angles which pre-training has shown: the paper's own, and what it invites."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from ..angles import angle_distribution
from ..disturbance import disturbance, margin_noise, select_interpolated, strategy_disturbance
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..relative import Profile, least_disturbing
from ..rope import COVERED, NTK, ORIGINAL, OURS, OURS_BY_NOISE, RELATIVE, RIVAL, UNIT, get, register, scale
from .parts import divide, interpolate, positive, yarn_temperature


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
    """The paper's method: interpolate the pairs whose angle distribution it disturbs less (equation 8).

    Args:
        threshold: t; interpolate where D_E > D_I + t.
        n_hat: n̂, the number of dimensions to interpolate instead; excludes a threshold.
        intervals: b, the histogram's intervals.
        convention: "released" or "equation", see :mod:`core.disturbance`.
        candidates: the methods of which every pair takes the least disturbing, the first of equals; as the released
            code's list of scaling methods, where the paper's equation knows extrapolation and PI. Excludes t and n̂.
        attention_factor: YaRN's temperature √(1/t), which the paper's method does without.
    """
    if candidates:
        if threshold != 0.0 or n_hat is not None:
            raise InputError("candidates were given along with t or n̂; give one, as each decides the selection alone.")
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
    """Per pair, the inverse frequency of the candidate that moves its angle distribution least."""
    if needy := [name for name in candidates if not get(name).ready]:
        raise InputError(f"the candidate {needy[0]!r} needs more than its name; choose others.")
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

    A pair is interpolated where a margin as large would arise from finite counts alone (see
    :func:`core.disturbance.margin_noise`) with a probability below `level` divided by the number of pairs, one-sided
    and normal: in all pairs together, at most `level`.

    Args:
        level: how probable it may be that noise alone interpolates a pair.
        intervals, convention, attention_factor: as of `dprope`.
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
    """DPRoPE with nothing set by hand: interpolate the pairs whose circle pre-training has not closed, λ_i > L.

    Extrapolation would show those pairs angles that were never seen, and only there is the disturbance beyond its noise
    by orders of magnitude. The attention factor is YaRN's.

    Args:
        covered_length: the length that pre-training really covered; None for L.
        attention_factor: None for YaRN's 0.1·ln s + 1.
    """
    length = geometry.context_length if covered_length is None else covered_length
    if not 1 <= length <= geometry.context_length:
        raise InputError(
            f"the covered length is {length}; give a whole number from 1 to L = {geometry.context_length}."
        )
    if attention_factor is None:
        attention_factor = yarn_temperature(factor)
    return interpolate(geometry, factor, geometry.wavelength > length, attention_factor)


@register(RELATIVE, "DPRoPE, relative", styles=(("#DDAA33", (0, (6, 1, 1, 1))), ("#BB5566", (0, (2, 1, 2, 3)))))
def dprope_relative(
    geometry: RopeGeometry,
    factor: float,
    *,
    profile: str | os.PathLike | None = None,
    attention_factor: float | None = None,
) -> RopeScaling:
    """Per pair the λ_i from 1 to s that disturbs least what attention looks at: a disturbance that sees distance.

    See :mod:`core.relative`: within L, how far the rotations between tokens change, weighted by the attention that goes
    to their distance; beyond L, how far they lie from the arc that pre-training has covered.

    Args:
        profile: a record of experiments.attention_distance; None for attention that falls as 1/Δ.
        attention_factor: None for YaRN's 0.1·ln s + 1.
    """
    by = least_disturbing(geometry, factor, None if profile is None else Profile.read(Path(profile)))
    return divide(geometry, factor, by, yarn_temperature(factor) if attention_factor is None else attention_factor)
