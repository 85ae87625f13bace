"""RoPE scaling methods: how each changes the inverse frequencies θ_i when L grows to L' = s·L.

A method is one registered function `(geometry, factor, **options) -> RopeScaling`; its keyword-only parameters are its
options, and the command line's. :func:`scale` looks it up by name. No other file lists methods by name: what a table,
a figure or a suite needs to know of one stands in its registration. Everything is float64 NumPy.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import get_args, get_type_hints

import numpy as np
from scipy.special import ndtri

from core.angles import angle_distribution
from core.disturbance import margin_noise, select_interpolated, strategy_disturbance
from core.errors import InputError, check_number, is_finite
from core.geometry import RopeGeometry, RopeScaling

Style = tuple[str, object]  # a colour, and a line style as matplotlib understands it


@dataclass(frozen=True)
class Method:
    """A registered method.

    Attributes:
        name: on command lines and in records.
        title: in tables and figures.
        function: (geometry, factor, **options) → RopeScaling.
        published: whether the paper fine-tunes it and compares with it.
        start: (model, geometry, factor) → the model that fine-tuning starts from, of a method that is learned and so
            cannot be had without; None for all others.
        styles: how it is drawn, and behind that its variants with other options; what is left out, figures choose.
    """

    name: str
    title: str
    function: Callable[..., RopeScaling]
    published: bool = False
    start: Callable | None = None
    styles: tuple[Style, ...] = ()


METHODS: dict[str, Method] = {}

# The parts that methods play in the paper's comparisons.
ORIGINAL = "original"  # the model as it is
UNIT = "pi"  # what times are relative to
RIVAL = "yarn"  # what differences are taken to
OURS = "dprope"  # the paper's own method
OURS_BY_NOISE = "dprope-significant"  # the same with nothing set by hand


def register(
    name: str,
    title: str | None = None,
    published: bool = False,
    start: Callable | None = None,
    styles: tuple[Style, ...] = (),
):
    """Add the decorated function to the registry under `name`; see :class:`Method`."""

    def add(function: Callable[..., RopeScaling]) -> Callable[..., RopeScaling]:
        METHODS[name] = Method(name, title or name, function, published, start, styles)
        return function

    return add


def get(name: str) -> Method:
    """The method of that name, or InputError."""
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"unknown method {name!r}; choose one of {', '.join(METHODS)}.")
    return METHODS[name]


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
    if not isinstance(geometry, RopeGeometry):
        raise InputError(f"the geometry is {geometry!r}; give a RopeGeometry.")
    known = method_options(method)
    for option, value in options.items():
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the method {method!r} has no option {option!r}; {takes}.")
        _check_type(method, option, value)
    if not is_finite(factor) or factor <= 1:
        raise InputError(f"the scaling factor is {factor!r}; to extend the context give a number above 1, such as 2.")
    if round(geometry.context_length * factor) == geometry.context_length:
        raise InputError(f"a factor of {factor} adds no token to {geometry.context_length}; give a larger one.")
    return METHODS[method].function(geometry, float(factor), **options)


def _check_type(method: str, option: str, value: object) -> None:
    hint = get_type_hints(METHODS[method].function).get(option, object)
    allowed = {Real if kind is float else Integral if kind is int else kind for kind in get_args(hint) or (hint,)}
    plain = {kind for kind in allowed if isinstance(kind, type)}
    if len(plain) == len(allowed) and (isinstance(value, bool) or not isinstance(value, tuple(plain))):
        names = " or ".join(sorted({Real: "a number", Integral: "a whole number"}.get(k, k.__name__) for k in plain))
        raise InputError(f"{option} of the method {method!r} is {value!r}; give {names.replace('NoneType', 'None')}.")
    if isinstance(value, Real):
        check_number(value, f"{option} of the method {method!r}")


def method_options(method: str) -> dict[str, object]:
    """The options of a method with their defaults."""
    parameters = inspect.signature(get(method).function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


@dataclass(frozen=True)
class Option:
    """A method's option, as a command line offers it.

    Attributes:
        methods: the names of those that take it.
        type: of its value: int, float or str.
        default: of the first that takes it.
        text: what the first one's docstring says of it.
    """

    methods: tuple[str, ...]
    type: type
    default: object
    text: str


def all_options() -> dict[str, Option]:
    """Every option of every method, by name."""
    found: dict[str, Option] = {}
    for method in METHODS.values():
        types = get_type_hints(method.function)
        for name, default in method_options(method.name).items():
            if name in found:
                found[name] = replace(found[name], methods=(*found[name].methods, method.name))
                continue
            kinds = [kind for kind in (get_args(types[name]) or (types[name],)) if kind in (int, float, str)]
            found[name] = Option((method.name,), kinds[0] if kinds else str, default, _text(method.function, name))
    return found


def _text(function: Callable, argument: str) -> str:
    """What a docstring says of an argument, in one line."""
    section = inspect.getdoc(function).partition("Args:\n")[2] if inspect.getdoc(function) else ""
    found = re.search(rf"^    (?:.*, )?{argument}(?:, .*)?: ((?:.|\n     )*)", section, re.MULTILINE)
    return " ".join(found[1].split()).rstrip(".") if found else argument.replace("_", " ")


def _interpolate(
    geometry: RopeGeometry,
    factor: float,
    chosen: np.ndarray,
    attention_factor: float = 1.0,
    stock: dict | None = None,
) -> RopeScaling:
    """θ/s where chosen, θ elsewhere; attention untouched unless asked for."""
    inv_freq = np.where(chosen, geometry.inv_freq / factor, geometry.inv_freq)
    return RopeScaling(inv_freq, _positive(attention_factor), chosen, stock=stock)


def _positive(attention_factor: float) -> float:
    if not is_finite(attention_factor) or attention_factor <= 0:
        raise InputError(f"the attention factor is {attention_factor}; give a positive number, such as 1.07.")
    return float(attention_factor)


@register(ORIGINAL, "original", styles=(("#000000", (0, (1, 1))),))
def original(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """No scaling: plain extrapolation to L'."""
    return _interpolate(geometry, factor, np.zeros(geometry.pairs, dtype=bool), stock={"rope_type": "default"})


@register(UNIT, "PI", published=True, styles=(("#E69F00", "--"),))
def position_interpolation(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """Position interpolation, θ/s for every pair (Chen et al. 2023; paper, section 2.2)."""
    stock = {"rope_type": "linear", "factor": factor}
    return _interpolate(geometry, factor, np.ones(geometry.pairs, dtype=bool), stock=stock)


@register("ntk", "NTK-aware", styles=(("#009E73", (0, (5, 1, 1, 1))),))
def ntk_aware(geometry: RopeGeometry, factor: float) -> RopeScaling:
    """NTK-aware scaling: base·s^(d/(d−2)), so that the last pair is divided by exactly s (bloc97, 2023)."""
    if geometry.head_dim == 2:
        raise InputError("NTK-aware scaling needs at least two pairs; this model rotates one. Use another method.")
    base = geometry.base * factor ** (geometry.head_dim / (geometry.head_dim - 2))
    inv_freq = RopeGeometry(geometry.head_dim, base, geometry.context_length).inv_freq
    stock = {"rope_type": "default", "rope_theta": float(base)}
    return RopeScaling(inv_freq, 1.0, np.arange(geometry.pairs) == geometry.pairs - 1, stock=stock)


@register(RIVAL, "YaRN", published=True, styles=(("#0072B2", "-."),))
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
    # Readers of the stock type find s as L'/L and choose the attention factor themselves; it has no other ramp.
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
    if attention_factor is None:
        attention_factor = 0.1 * float(np.log(factor)) + 1
    return RopeScaling(inv_freq, _positive(attention_factor), weight == 1, stock=stock)


def _start_clex(model, geometry: RopeGeometry, factor: float):
    from core import clex  # needs torch, which tables and figures do without

    return clex.install(model, geometry, factor)


@register("clex", "CLEX", published=True, start=_start_clex, styles=(("#CC79A7", (0, (3, 1, 1, 1, 1, 1))),))
def clex(geometry: RopeGeometry, factor: float, *, weights: str | os.PathLike | None = None) -> RopeScaling:
    """CLEX (Chen et al. 2023) at t = ⌈s⌉; in a model, the scale follows the input's length, see :mod:`core.clex`.

    Args:
        weights: the trained neural ODE: a clex.safetensors, or a directory that holds one.
    """
    from core.clex import scaling  # needs torch, which tables and figures do without

    return scaling(geometry, factor, weights)


@register(OURS, "DPRoPE", published=True, styles=(("#D55E00", "-"), ("#56B4E9", (0, (4, 1)))))
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
    return _interpolate(geometry, factor, extrapolation - interpolation > critical * noise, attention_factor)
