"""The registry of RoPE scaling methods.

What a table, a figure or a suite needs to know about a method is in its registration, so that they
list none by name.
"""

import contextlib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import InputError, check_choice
from ..geometry import RopeGeometry, RopeScaling

Style = tuple[str, object]  # a colour, and a line style as matplotlib understands it


@dataclass(frozen=True)
class Method:
    """A registered method.

    Attributes:
        name: its name on command lines and in records.
        title: its name in tables and figures.
        function: (geometry, factor, **options) → RopeScaling.
        published: whether the paper fine-tunes models by it and compares them.
        by_disturbance: whether it chooses by the disturbance what to do with a pair.
        start: (model, geometry, factor) → the model that fine-tuning starts from, for a method that
            needs training; None for all others.
        label: the given options → the name of a setting in tables and figures, or None for the
            title with the options; None for a method that names none itself.
        by_length: whether each prompt has the scale of its own length, in this process alone.
        styles: how figures draw it, followed by its settings with other options; figures choose
            what is not listed.
    """

    name: str
    title: str
    function: Callable[..., RopeScaling]
    published: bool = False
    by_disturbance: bool = False
    start: Callable | None = None
    label: Callable[[dict], str | None] | None = None
    by_length: bool = False
    styles: tuple[Style, ...] = ()

    @property
    def about(self) -> str:
        """What it does: the first sentences of its docstring, in a line."""
        text = inspect.getdoc(self.function) or ""
        return " ".join(text.partition("\n\n")[0].split())

    @property
    def options(self) -> list[inspect.Parameter]:
        """What its function takes beside a geometry and a factor."""
        _, _, *options = inspect.signature(self.function).parameters.values()
        return options

    @property
    def needs(self) -> tuple[str, ...]:
        """The options without a default."""
        return tuple(option.name for option in self.options if option.default is option.empty)

    @property
    def ready(self) -> bool:
        """Whether it needs neither training nor an option, and so is in every comparison of
        untrained methods."""
        return self.start is None and not self.needs

    def ready_for(self, geometry: RopeGeometry) -> bool:
        """Whether it is ready and does not change the base, where RoPE that was scaled before has
        none."""
        if geometry.frequencies is None or not self.ready:
            return self.ready
        with contextlib.suppress(InputError):
            return bool(self.function(geometry, 2.0))
        return False

    def scale(self, geometry: RopeGeometry, factor: float, **options) -> RopeScaling:
        """What the function makes of a geometry; of one that was scaled before, on top of that.

        Raises:
            InputError: it is no scaling of this geometry.
        """
        scaling = self.function(geometry, factor, **options)
        if not _fits(scaling, geometry.pairs):
            raise InputError(
                f"the method {self.name!r} must return a RopeScaling with a finite frequency of at "
                f"least 0 for each of the {geometry.pairs} pairs, and whether it is interpolated."
            )
        if geometry.frequencies is None:
            return scaling
        # A stock type divides base^(−2i/d), so it would undo what was there before.
        return replace(
            scaling,
            attention_factor=scaling.attention_factor * geometry.attention_factor,
            stock=None,
        )


def _fits(scaling: object, pairs: int) -> bool:
    """Whether this is a scaling of so many pairs."""
    if not isinstance(scaling, RopeScaling):
        return False
    frequencies = np.asarray(scaling.inv_freq)
    of_pairs = frequencies.shape == (pairs,) == np.shape(scaling.interpolated)
    return of_pairs and bool((np.isfinite(frequencies) & (frequencies >= 0)).all())


METHODS: dict[str, Method] = {}


def register(name: str, title: str | None = None, **fields):
    """Add the decorated function to the registry under `name`; for the other arguments see
    :class:`Method`.

    Raises:
        InputError: the name or the title is taken, or an option is not keyword-only or states no
            type.
    """

    def add(function: Callable[..., RopeScaling]) -> Callable[..., RopeScaling]:
        if name in METHODS:
            raise InputError(f"there is a method {name!r} already; give this one another name.")
        method = Method(name, title or name, function, **fields)
        if method.title in (other.title for other in METHODS.values()):
            raise InputError(
                f"there is a method with the title {method.title!r} already, which names it in "
                f"tables; give {name!r} another title."
            )
        for option in method.options:
            if option.kind is not option.KEYWORD_ONLY or option.annotation is option.empty:
                raise InputError(
                    f"the method {name!r} must take its option {option.name} after a `*`, with its "
                    "type."
                )
        _check_types(method)
        METHODS[name] = method
        return function

    return add


# What a command line can state; an option of None is left open.
_KINDS = {int, float, str, bool, os.PathLike, type(None)}


def kinds(hint: object) -> tuple:
    """The types that a hint allows."""
    several = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(os.PathLike if get_origin(each) is os.PathLike else each for each in several)


def _check_types(method: Method) -> None:
    """Refuse an option of a type that no command line states, or of another type than an option of
    that name has already."""
    try:
        hints = get_type_hints(method.function)
    except (NameError, TypeError) as error:
        raise InputError(
            f"the types of the options of the method {method.name!r} cannot be read ({error}); "
            "state them by names that are imported."
        ) from error
    for option in method.options:
        of_option = kinds(hints[option.name])
        if not _KINDS.issuperset(of_option):
            raise InputError(
                f"the option {option.name} of the method {method.name!r} has the type "
                f"{hints[option.name]}; give int, float, str, bool, os.PathLike, or several by |."
            )
        for other in METHODS.values():
            theirs = get_type_hints(other.function).get(option.name)
            known = option.name in (each.name for each in other.options)
            if known and not {*kinds(theirs)} & {*of_option} - {type(None)}:
                raise InputError(
                    f"the option {option.name} of the method {method.name!r} has another type than "
                    f"that of {other.name!r}; give it that type, or another name."
                )


def get(name: str) -> Method:
    """The method called `name`; InputError if there is none."""
    check_choice(name, "method", METHODS)
    return METHODS[name]


def check_fixed(name: str) -> None:
    """Raise InputError if the method scales by a prompt's length: neither training nor a file can
    have that."""
    if get(name).by_length:
        raise InputError(
            f"the method {name!r} scales each prompt by its length, which no checkpoint states "
            f"and no training uses; "
            "take the method that it scales by."
        )
