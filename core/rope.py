"""Scale a RoPE by a method's name: how each method changes the inverse frequencies θ_i when L grows
to L' = s·L.

A method is one registered function `(geometry, factor, **options) -> RopeScaling` in core/methods.
Its keyword-only parameters are its options, in Python and on the command line. :func:`scale` looks
it up by name. All arithmetic is float64 NumPy.
"""

import inspect
import json
import os
import re
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_type_hints

# Importing the methods registers them; the other names are this module's, too.
from . import BASELINE, ORIGINAL, PROPOSED, TIME_REFERENCE, methods  # noqa: F401
from .errors import InputError, check_number
from .geometry import LARGEST, RopeGeometry, RopeScaling
from .methods.registry import (  # noqa: F401
    METHODS,
    Method,
    Style,
    check_fixed,
    get,
    kinds,
    register,
)

_LONGEST = 2**31 - 1  # tokens; engines and configurations count positions in 32 bits


def scale(geometry: RopeGeometry, method: str, factor: float, **options) -> RopeScaling:
    """Scale `geometry` by `method` for a context `factor` times as long.

    Args:
        geometry: the pre-trained RoPE.
        method: a name in :data:`METHODS`.
        factor: s = L'/L > 1.
        options: the method's options, see :func:`method_options`.

    Raises:
        InputError: the method or an option is unknown, a required option is missing, or the factor
            adds no token.
    """
    if not isinstance(geometry, RopeGeometry):
        raise InputError(f"the geometry is {geometry!r}; give a RopeGeometry.")
    allowed = method_options(method)
    for option, value in options.items():
        if option not in allowed:
            takes = ", ".join(allowed) or "none"
            raise InputError(f"the method {method!r} has no option {option!r}; it takes {takes}.")
        _check_type(method, option, value)
    for needed in METHODS[method].needs:
        if needed not in options:
            raise InputError(
                f"the method {method!r} needs its option {needed}; give it "
                f"(--{needed.replace('_', '-')})."
            )
    factor = check_number(factor, "the scaling factor", above=1)
    longer = check_number(
        geometry.context_length * factor, "the longer context, s·L in tokens,", most=_LONGEST
    )
    if round(longer) == geometry.context_length:
        raise InputError(
            f"a factor of {factor} adds no token to {geometry.context_length}; give a larger one."
        )
    return METHODS[method].scale(geometry, factor, **options)


_NAMES = {
    Real: "a number",
    Integral: "a whole number",
    type(None): "None",
    bool: "True or False",
}


def _check_type(method: str, option: str, value: object) -> None:
    name = f"{option} of the method {method!r}"
    allowed = tuple(
        {float: Real, int: Integral}.get(kind, kind) for kind in kinds(_hints(method)[option])
    )
    if (isinstance(value, bool) and bool not in allowed) or not isinstance(value, allowed):
        names = " or ".join(sorted(_NAMES.get(kind, kind.__name__) for kind in allowed))
        raise InputError(f"{name} is {value!r}; give {names}.")
    if value == "":
        raise InputError(f"{name} is empty; give a name or a path.")
    if isinstance(value, Real) and not isinstance(value, bool):
        check_number(value, name, -LARGEST, LARGEST)


def _hints(method: str) -> dict[str, object]:
    """The types of what a method's function takes, its options among them."""
    return get_type_hints(METHODS[method].function)


def method_options(method: str) -> dict[str, Any]:
    """The options of a method with their defaults; a required option has None."""
    return {
        option.name: None if option.default is option.empty else option.default
        for option in get(method).options
    }


def changed_options(method: str, options: dict) -> dict:
    """The options that do not have their defaults, as JSON has them.

    So a setting has one name, whatever it states and whoever gives it.
    """
    defaults, given = json.loads(
        json.dumps([method_options(method), options], default=lambda value: value.item())  # NumPy's
    )
    for name, hint in _hints(method).items():
        if isinstance(given.get(name), int) and float in kinds(hint):
            given[name] = float(given[name])
    return {name: value for name, value in given.items() if value != defaults.get(name)}


def stated_options(method: str, options: dict) -> dict:
    """The changed options as records and exports state them: a path by its last part only, because
    it may move."""
    names = {name: path.name for name, path in named_files(method, options).items()}
    return changed_options(method, options | names)


def named_files(method: str, options: dict) -> dict[str, Path]:
    """The options that name a file or a directory; their content, not their path, decides the
    result."""
    hints = _hints(method)
    return {
        name: Path(value)
        for name, value in options.items()
        if value is not None and os.PathLike in kinds(hints.get(name))
    }


def all_options() -> dict[str, dict]:
    """Every option of every method, by name, as a command line offers it.

    Returns:
        of each "methods", the names of those that take it; "type" (int, float, str or bool);
        "default" and "text", its explanation, of the first of these methods.
    """
    options: dict[str, dict] = {}
    for method in METHODS.values():
        hints = _hints(method.name)
        for name, default in method_options(method.name).items():
            if name in options:
                options[name]["methods"].append(method.name)
                continue
            allowed = kinds(hints[name])
            options[name] = {
                "methods": [method.name],
                "type": next((kind for kind in allowed if kind in (int, float, str, bool)), str),
                "default": default,
                "text": _text(method.function, name),
            }
    return options


def _text(function: Callable, argument: str) -> str:
    """A docstring's explanation of an argument, in one line."""
    section = (inspect.getdoc(function) or "").partition("Args:\n")[2]
    text = re.search(rf"^    (?:.*, )?{argument}(?:, .*)?: ((?:.|\n     )*)", section, re.MULTILINE)
    return " ".join(text[1].split()).rstrip(".") if text else argument.replace("_", " ")
