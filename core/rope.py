"""The registry of RoPE scaling methods: how each changes the inverse frequencies θ_i when L grows to L' = s·L.

A method is one registered function `(geometry, factor, **options) -> RopeScaling` in :mod:`core.methods`. Its
keyword-only parameters are its options, in Python and on the command line. :func:`scale` looks it up by name. No other
file lists methods by name: what a table, a figure or a suite needs to know about a method is in its registration. All
arithmetic is float64 NumPy.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from .errors import InputError, check_number, is_finite
from .geometry import RopeGeometry, RopeScaling

Style = tuple[str, object]  # a colour, and a line style as matplotlib understands it


@dataclass(frozen=True)
class Method:
    """A registered method.

    Attributes:
        name: its name on command lines and in records.
        title: its name in tables and figures.
        function: (geometry, factor, **options) → RopeScaling.
        published: whether the paper fine-tunes models by it and compares them.
        start: (model, geometry, factor) → the model that fine-tuning starts from, for a method that needs training;
            None for all others.
        styles: how figures draw it, followed by its variants with other options; figures choose what is not listed.
        variants: options that get a row of their own, beside the defaults, in every comparison of untrained methods.
    """

    name: str
    title: str
    function: Callable[..., RopeScaling]
    published: bool = False
    start: Callable | None = None
    styles: tuple[Style, ...] = ()
    variants: tuple[dict, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The options without a default."""
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty)

    @property
    def ready(self) -> bool:
        """Whether it needs neither training nor an option, and so is in every comparison of untrained methods."""
        return self.start is None and not self.needs


METHODS: dict[str, Method] = {}

# The roles that methods play in comparisons.
ORIGINAL = "original"  # the model without scaling
UNIT = "pi"  # times are given relative to its time
RIVAL = "yarn"  # differences are taken from its scores
OURS = "dprope"  # the paper's own method
OURS_BY_NOISE = "dprope-significant"  # the paper's method with nothing set by hand
NTK = "ntk"
TO_BEAT = "mrrope-pro"  # the rule published since the paper that is level with or ahead of YaRN
COVERED = "dprope-covered"  # interpolates what pre-training did not cover
GIVEN = "factors"  # reads factors from a file

# An option that every method with fixed frequencies has.
RESONANCE = "resonance"
_RESONANCE = "round every wavelength 2π/θ̂_i to whole tokens, so that angles repeat (Resonance RoPE, arXiv 2403.00071)"


def register(
    name: str,
    title: str | None = None,
    published: bool = False,
    start: Callable | None = None,
    styles: tuple[Style, ...] = (),
    variants: tuple[dict, ...] = (),
):
    """Add the decorated function to the registry under `name`; see :class:`Method`."""

    def add(function: Callable[..., RopeScaling]) -> Callable[..., RopeScaling]:
        METHODS[name] = Method(name, title or name, function, published, start, styles, variants)
        return function

    return add


def get(name: str) -> Method:
    """The method called `name`; InputError if there is none."""
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"unknown method {name!r}; choose one of {', '.join(METHODS)}.")
    return METHODS[name]


def scale(geometry: RopeGeometry, method: str, factor: float, **options) -> RopeScaling:
    """Scale `geometry` by `method` for a context `factor` times as long.

    Args:
        geometry: the pre-trained RoPE.
        method: a name in :data:`METHODS`.
        factor: s = L'/L > 1.
        options: the method's options, see :func:`method_options`; `resonance` rounds every wavelength.

    Raises:
        InputError: the method or an option is unknown, a required option is missing, or the factor adds no token.
    """
    if not isinstance(geometry, RopeGeometry):
        raise InputError(f"the geometry is {geometry!r}; give a RopeGeometry.")
    known = method_options(method)
    for option, value in options.items():
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the method {method!r} has no option {option!r}; {takes}.")
        _check_type(method, option, value)
    for option in METHODS[method].needs:
        if option not in options:
            raise InputError(
                f"the method {method!r} needs its option {option}; give it (--{option.replace('_', '-')})."
            )
    if not is_finite(factor) or factor <= 1:
        raise InputError(f"the scaling factor is {factor!r}; to extend the context give a number above 1, such as 2.")
    if round(geometry.context_length * factor) == geometry.context_length:
        raise InputError(f"a factor of {factor} adds no token to {geometry.context_length}; give a larger one.")
    resonance = options.pop(RESONANCE, False)
    scaling = METHODS[method].function(geometry, float(factor), **options)
    return _resonant(scaling) if resonance else scaling


def _resonant(scaling: RopeScaling) -> RopeScaling:
    """Round every wavelength to whole tokens, so that angles repeat and a longer context has no new ones."""
    return replace(scaling, inv_freq=2 * np.pi / np.round(2 * np.pi / scaling.inv_freq), stock=None)


_NAMES = {Real: "a number", Integral: "a whole number", type(None): "None", bool: "True or False", tuple: "a list"}


def _check_type(method: str, option: str, value: object) -> None:
    allowed = {Real if kind is float else Integral if kind is int else kind for kind in _kinds(_hints(method)[option])}
    plain = {kind for kind in allowed if isinstance(kind, type)}
    is_flag = isinstance(value, bool) and bool not in plain
    value = tuple(value) if isinstance(value, list) else value  # as JSON has it
    if len(plain) == len(allowed) and (is_flag or not isinstance(value, tuple(plain))):
        names = " or ".join(sorted(_NAMES.get(kind, kind.__name__) for kind in plain))
        raise InputError(f"{option} of the method {method!r} is {value!r}; give {names}.")
    if isinstance(value, Real) and not isinstance(value, bool):
        check_number(value, f"{option} of the method {method!r}")


def _hints(method: str) -> dict[str, object]:
    """The types of a method's options."""
    hints = get_type_hints(METHODS[method].function)
    return {name: hints.get(name, object) for name in method_options(method)} | {RESONANCE: bool}


def _kinds(hint: object) -> tuple:
    """The types that a hint allows; a tuple's elements are not checked."""
    return (tuple,) if get_origin(hint) is tuple else get_args(hint) or (hint,)


def method_options(method: str) -> dict[str, Any]:
    """The options of a method with their defaults; a required option has None."""
    parameters = inspect.signature(get(method).function).parameters.values()
    own = {p.name: None if p.default is p.empty else p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    return own if METHODS[method].start else own | {RESONANCE: False}


def named_files(method: str, options: dict) -> dict[str, Path]:
    """The options that name a file or a directory; their content, not their path, decides the result."""
    paths = {name for name, hint in _hints(method).items() if os.PathLike in _kinds(hint)}
    return {name: Path(value) for name, value in options.items() if name in paths and value is not None}


@dataclass(frozen=True)
class Option:
    """A method's option, as a command line offers it.

    Attributes:
        methods: the names of the methods that take it.
        type: the type of its value: int, float, str or bool.
        several: whether it takes a list of such values.
        default: the default of the first method that takes it.
        text: the explanation in the docstring of that method.
    """

    methods: tuple[str, ...]
    type: type
    several: bool
    default: object
    text: str


def all_options() -> dict[str, Option]:
    """Every option of every method, by name."""
    found: dict[str, Option] = {}
    for method in METHODS.values():
        hints = _hints(method.name)
        for name, default in method_options(method.name).items():
            if name in found:
                found[name] = replace(found[name], methods=(*found[name].methods, method.name))
                continue
            several = get_origin(hints[name]) is tuple
            kinds = get_args(hints[name])[:1] if several else _kinds(hints[name])
            kind = next((kind for kind in kinds if kind in (int, float, str, bool)), str)
            text = _RESONANCE if name == RESONANCE else _text(method.function, name)
            found[name] = Option((method.name,), kind, several, default, text)
    return found


def _text(function: Callable, argument: str) -> str:
    """A docstring's explanation of an argument, in one line."""
    section = (inspect.getdoc(function) or "").partition("Args:\n")[2]
    found = re.search(rf"^    (?:.*, )?{argument}(?:, .*)?: ((?:.|\n     )*)", section, re.MULTILINE)
    return " ".join(found[1].split()).rstrip(".") if found else argument.replace("_", " ")


from . import methods  # noqa: E402, F401  (registers them; they import this module)
