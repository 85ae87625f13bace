"""A setting, which is a method with its options at a scaling factor, and how it is spelled: in
words, in the name of a record, and on a command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import PROPOSED, SYMBOLS, rope
from .errors import InputError
from .geometry import RopeGeometry, RopeScaling

Choice = tuple[str, dict]  # a method and its options, as suites and command lines choose them
AS_IT_IS = "as it is"  # a checkpoint that no method here extended
_FILES = {"weights", "file"}
_APART = ("attention_factor", "weights")


@dataclass(frozen=True)
class Setting:
    """A method, its given options, and the scaling factor s; a method of None is a model as it
    is.

    Attributes:
        last: how many of a text's last tokens are read, where it is not the whole text.
    """

    method: str | None
    options: tuple[tuple[str, Any], ...] = ()
    factor: float = 1.0
    last: int | None = None

    @classmethod
    def make(cls, method: str | None, options: Mapping, factor: float = 1.0) -> Setting:
        """The setting of these options, by name."""
        return cls(method, tuple(sorted(options.items())), float(factor))

    @classmethod
    def of(cls, run: Mapping) -> Setting:
        """The setting of a record's run."""
        setting = cls.make(run["method"], run["options"], run["factor"])
        return replace(setting, last=run.get("read"))

    def option(self, name: str, default: Any = None) -> Any:
        """An option's value if it was given, else `default`."""
        return dict(self.options).get(name, default)

    def scaling(self, geometry: RopeGeometry) -> RopeScaling | None:
        """The scaled RoPE; None if it follows the input or a file, or this version has no such
        method or options."""
        method = rope.METHODS.get(self.method or "")
        if method is None or method.start or dict(self.options).keys() & _FILES:
            return None
        try:
            return rope.scale(geometry, method.name, self.factor, **dict(self.options))
        except InputError:
            return None

    def plain(self, *options: str) -> bool:
        """Whether no options except these were given; options that name a file do not count."""
        return dict(self.options).keys() <= {*options, *_FILES}

    @property
    def typed(self) -> str:
        """The words that give it on a command line, such as "dprope --n-hat 40"."""
        return shlex.join([self.method or "", *flags(dict(self.options))])

    def run_name(self, seed: int | None = None) -> str:
        """A file name that tells runs apart: the method, its given options, the factor, a
        fine-tune's seed; such as "dprope_n-hat=40_s=2".

        An option that is a path appears with its last part only.
        """
        parts = [str(self.method)]
        for name, value in self.options:
            parts.append(f"{name.replace('_', '-')}={Path(str(value)).name}")
        parts.append(f"s={self.factor:g}")
        if seed is not None:
            parts.append(f"seed={seed}")
        return "_".join(parts)

    @property
    def name(self) -> str:
        """The name in tables, figures, pages and terminals: the method's title, and the options
        that set it apart."""
        if self.method is None:
            return AS_IT_IS
        method = rope.METHODS.get(self.method)
        if method and method.label and (label := method.label(dict(self.options))):
            return label
        shown = [_option(name, value) for name, value in self.options if name not in _APART]
        if self.method == PROPOSED and self.plain("attention_factor"):
            shown = ["t = 0"]
        title = method.title if method else self.method
        name = title + (f" ({', '.join(shown)})" if shown else "")
        if (factor := self.option("attention_factor")) is not None:
            short = f"{factor:.2f}"
            exact = short if float(short) == factor else f"{factor:g}"  # two factors, two names
            name += f", attention × {exact}"
        return f"{name}, last {tokens(self.last)}" if self.last else name

    @property
    def order(self) -> tuple:
        """The sort key: the order of the registry, what a file holds last; then factor, n̂ (no n̂
        first, then descending), b and the rest."""
        names = [None, *rope.METHODS]
        index = names.index(self.method) if self.method in names else len(names)
        rest = dict(self.options)
        n_hat = rest.pop("n_hat", 1e9)
        intervals = rest.pop("intervals", 0)
        given = -n_hat, intervals, len(rest), str(rest)
        return "file" in rest, index, self.factor, *given, self.last or 0


def flags(options: Mapping) -> list[str]:
    """The words that state these options on a command line; True is a flag, a tuple or list several
    values."""
    words = []
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, tuple | list):
            words += map(str, value)
        elif value is not True:
            words.append(str(value))
    return words


def tokens(length: int) -> str:
    """A length in tokens as tables print it: 512, 1k, 12k."""
    return str(length) if length % 1024 else f"{length // 1024}k"


def _option(name: str, value: object) -> str:
    """An option as tables print it."""
    if value is True:
        return name.replace("_", " ")
    value = f"{value:g}" if isinstance(value, float) else value
    return (
        Path(str(value)).stem
        if name in _FILES
        else f"{SYMBOLS.get(name, name.replace('_', ' '))} = {value}"
    )
