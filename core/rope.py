"""RoPE scaling methods: how each changes the inverse frequencies θ_i when L grows to L' = s·L.

A method is one registered function `(geometry, factor, **options) -> RopeScaling`; options are its
keyword-only parameters. :func:`scale` looks it up by name. Everything is float64 NumPy.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from core.angles import angle_distribution
from core.disturbance import margin_noise, select_interpolated, strategy_disturbance
from core.errors import InputError
from core.geometry import RopeGeometry, RopeScaling

METHODS: dict[str, Callable[..., RopeScaling]] = {}


def register(name: str):
    """Add the decorated function to the registry under `name`."""

    def add(function: Callable[..., RopeScaling]) -> Callable[..., RopeScaling]:
        METHODS[name] = function
        return function

    return add


def scale(geometry: RopeGeometry, method: str, factor: float, **options) -> RopeScaling:
    """Scale `geometry` by `method` for a context `factor` times as long.

    Args:
        geometry: the pre-trained RoPE.
        method: a name in :data:`METHODS`.
        factor: s = L'/L > 1.
        options: the method's own, see :func:`method_options`.

    Raises:
        InputError: an unknown method or option, or a factor that extends nothing.
    """
    known = method_options(method)
    for option in options:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the method {method!r} has no option {option!r}; {takes}.")
    if not np.isfinite(factor) or factor <= 1:
        raise InputError(f"the scaling factor is {factor}; to extend the context give a number above 1, such as 2.")
    return METHODS[method](geometry, float(factor), **options)


def method_options(method: str) -> dict[str, object]:
    """The options of a method with their defaults."""
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}.")
    parameters = inspect.signature(METHODS[method]).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _interpolate(
    geometry: RopeGeometry, factor: float, chosen: np.ndarray, attention_factor: float = 1.0
) -> RopeScaling:
    """θ/s where chosen, θ elsewhere; attention untouched unless asked for."""
    inv_freq = np.where(chosen, geometry.inv_freq / factor, geometry.inv_freq)
    return RopeScaling(inv_freq, _positive(attention_factor), chosen)


def _positive(attention_factor: float) -> float:
    if not np.isfinite(attention_factor) or attention_factor <= 0:
        raise InputError(f"the attention factor is {attention_factor}; give a positive number, such as 1.07.")
    return float(attention_factor)


@register("original")
def original(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """No scaling: plain extrapolation to L'."""
    return _interpolate(geometry, factor, np.zeros(geometry.pairs, dtype=bool))


@register("pi")
def position_interpolation(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """Position interpolation, θ/s for every pair (Chen et al. 2023; paper, section 2.2)."""
    return _interpolate(geometry, factor, np.ones(geometry.pairs, dtype=bool))


@register("ntk")
def ntk_aware(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """NTK-aware scaling: base·s^(d/(d−2)), so that the last pair is divided by exactly s (bloc97, 2023)."""
    if geometry.head_dim == 2:
        raise InputError("NTK-aware scaling needs at least two pairs; this model rotates one. Use another method.")
    base = geometry.base * factor ** (geometry.head_dim / (geometry.head_dim - 2))
    inv_freq = RopeGeometry(geometry.head_dim, base, geometry.context_length).inv_freq
    return RopeScaling(inv_freq, 1.0, np.arange(geometry.pairs) == geometry.pairs - 1)


@register("yarn")
def yarn(
    geometry: RopeGeometry,
    factor: float,
    *,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "index",
    attention_factor: float | None = None,
) -> RopeScaling:
    """YaRN (Peng et al. 2023): keep pairs with many rotations within L, interpolate those with few, blend between.

    The number of rotations is r_i = L/λ_i.

    Args:
        beta_fast: β; pairs with r_i > β are kept.
        beta_slow: α; pairs with r_i < α are interpolated.
        ramp: "index", the official code's blend, linear in the pair index between whole-number limits; or
            "rotations", linear in r_i as the paper under reproduction prints it (equation 4).
        attention_factor: √(1/t), which multiplies queries and keys alike; None for 0.1·ln s + 1.
    """
    if not 0 < beta_slow < beta_fast:
        raise InputError(f"YaRN needs 0 < beta_slow < beta_fast, but they are {beta_slow} and {beta_fast}.")
    if ramp == "index":

        def index_of(rotations: float) -> float:
            """The (real) pair index at which r_i = rotations."""
            span = np.log(geometry.context_length / (2 * np.pi * rotations))
            return geometry.head_dim * span / (2 * np.log(geometry.base))

        low = max(np.floor(index_of(beta_fast)), 0)
        high = min(np.ceil(index_of(beta_slow)), geometry.head_dim - 1)
        # The official code widens an empty ramp by 0.001 to divide by it.
        weight = (np.arange(geometry.pairs) - low) / (high - low if high != low else 1e-3)
    elif ramp == "rotations":
        rotations = geometry.context_length / geometry.wavelength
        weight = (beta_fast - rotations) / (beta_fast - beta_slow)
    else:
        raise InputError(f"unknown YaRN ramp {ramp!r}; choose index or rotations.")
    weight = np.clip(weight, 0, 1)
    inv_freq = geometry.inv_freq * (1 - weight) + geometry.inv_freq / factor * weight
    if attention_factor is None:
        attention_factor = 0.1 * float(np.log(factor)) + 1
    return RopeScaling(inv_freq, _positive(attention_factor), weight == 1)


@register("clex")
def clex(geometry: RopeGeometry, factor: float, *, weights: str | os.PathLike | None = None) -> RopeScaling:
    """CLEX (Chen et al. 2023) at t = ⌈s⌉; in a model, the scale follows the input's length, see :mod:`core.clex`.

    Args:
        weights: the trained neural ODE: a clex.safetensors, or a directory that holds one.
    """
    from core.clex import scaling  # needs torch, which tables and figures do without

    return scaling(geometry, factor, weights)


@register("dprope")
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
    """The paper's method: interpolate the pairs whose angle distribution it disturbs less (equation 8).

    Args:
        threshold: t; interpolate where D_E > D_I + t.
        n_hat: n̂, the number of dimensions to interpolate instead; excludes a threshold.
        intervals: b, the histogram's intervals.
        convention: "released" or "equation", see :mod:`core.disturbance`.
        attention_factor: YaRN's temperature √(1/t), which the paper's method does without.
    """
    interpolation, extrapolation = strategy_disturbance(
        geometry.inv_freq, geometry.context_length, factor, intervals, convention
    )
    chosen = select_interpolated(interpolation, extrapolation, threshold, n_hat)
    return _interpolate(geometry, factor, chosen, attention_factor)


@register("dprope-significant")
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
    return _interpolate(geometry, factor, extrapolation - interpolation > critical * noise, attention_factor)
