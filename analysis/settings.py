"""A setting, which is a method with its options at a scaling factor; the names and order of
settings and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.results import Results
from core import PROPOSED, SYMBOLS
from core.errors import InputError
from core.geometry import RopeGeometry, RopeScaling

if TYPE_CHECKING:
    from core.rope import Method

STATES = ((False, "without training"), (True, "fine-tuned"))
AS_IT_IS = "as it is"  # a checkpoint that no method here extended


def methods() -> Mapping[str, Method]:
    """The registered methods. All of them are loaded when the first row is named, and not to read
    records."""
    from core import rope

    return rope.METHODS


def default_of(option: str) -> Any:
    """The default of an option of DPRoPE."""
    from core import rope

    return rope.method_options(PROPOSED)[option]


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
    def of(cls, run: Mapping) -> Setting:
        """The setting of a record's run."""
        entries = run["options"].items()
        options = {
            name: tuple(value) if isinstance(value, list) else value for name, value in entries
        }
        given = tuple(sorted(options.items()))
        return cls(run["method"], given, float(run["factor"]), run.get("read"))

    def option(self, name: str, default: Any = None) -> Any:
        """An option's value if it was given, else `default`."""
        return dict(self.options).get(name, default)

    def scaling(self, geometry: RopeGeometry) -> RopeScaling | None:
        """The scaled RoPE; None if it follows the input or a file, or this version has no such
        method or options."""
        from core import rope

        method = rope.METHODS.get(self.method)
        if method is None or method.start or dict(self.options).keys() & _FILES:
            return None
        try:
            return rope.scale(geometry, self.method, self.factor, **dict(self.options))
        except InputError:
            return None

    def plain(self, *options: str) -> bool:
        """Whether no options except these were given; options that name a file do not count."""
        return not {name for name, _ in self.options} - {*options, *_FILES}

    @property
    def name(self) -> str:
        """The name in tables, figures and pages: the method's title, and the options that set it
        apart."""
        if self.method is None:
            return AS_IT_IS
        method = methods().get(self.method)
        if method and method.label and (label := method.label(dict(self.options))):
            return label
        shown = [_option(name, value) for name, value in self.options if name not in _APART]
        if self.method == PROPOSED and self.plain("attention_factor"):
            shown = ["t = 0"]
        title = method.title if method else self.method
        name = title + (f" ({', '.join(shown)})" if shown else "")
        if (factor := self.option("attention_factor")) is not None:
            name += f", attention × {factor:.2f}"
        return f"{name}, last {tokens(self.last)}" if self.last else name

    @property
    def order(self) -> tuple:
        """The sort key: the order of the registry, what a file holds last; then factor, n̂ (no n̂
        first, then descending), b and the rest."""
        names = [None, *methods()]
        options = dict(self.options)
        rest = {
            name: value for name, value in options.items() if name not in ("n_hat", "intervals")
        }
        index = names.index(self.method) if self.method in names else len(names)
        given = (
            -(options.get("n_hat") or 1e9),
            options.get("intervals", 0),
            len(rest),
            str(rest),
        )
        return "file" in options, index, self.factor, *given, self.last or 0


_FILES = {"weights", "file"}
_APART = ("attention_factor", "weights")


def _option(name: str, value: object) -> str:
    """An option as tables print it."""
    if value is True:
        return name.replace("_", " ")
    if isinstance(value, tuple):
        return f"{len(value)} {name}"
    value = f"{value:g}" if isinstance(value, float) else value
    return (
        Path(str(value)).stem
        if name in _FILES
        else f"{SYMBOLS.get(name, name.replace('_', ' '))} = {value}"
    )


def seed_count(seeds: int) -> str:
    """A number of training seeds as tables and pages print it."""
    return "one seed" if seeds == 1 else f"{seeds} seeds"


def tokens(length: int) -> str:
    """A length in tokens as tables print it: 512, 1k, 12k."""
    return str(length) if length % 1024 else f"{length // 1024}k"


def span(start: int, end: int) -> str:
    """Positions in tokens as tables print them: 8–12k, 1024–1536."""
    whole = start % 1024 == 0 == end % 1024
    return f"{start // 1024}–{end // 1024}k" if whole else f"{start}–{end}"


def extended_length(results: Results, factor: float) -> int:
    """L' = s·L in tokens."""
    return round(results.context_length * factor)
