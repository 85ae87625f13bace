"""The records of a scale, read once, and what scale.json says they are of."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.lab.records import RESULTS, SCALE


class NotMeasured(InputError):
    """There is no record of what was asked for; the message names the command that makes one."""


@dataclass(frozen=True)
class Scale:
    """A base model.

    Attributes:
        name: of its folder under results/.
        title: in tables and figures.
        geometry: d, base and L.
        n_hat: n̂ by scaling factor, where it is set by hand.
        ablated: options that the scale's suite varies; other values than its own belong to the ablations' tables.
    """

    name: str
    title: str
    geometry: RopeGeometry
    n_hat: dict[float, int] = field(default_factory=dict)
    ablated: tuple[str, ...] = ()

    @property
    def context_length(self) -> int:
        """L in tokens."""
        return self.geometry.context_length


@dataclass(frozen=True)
class Results:
    """A scale's records.

    Attributes:
        folder: all scales' records, results/ or what a rerun wrote.
        scale: whose these are.
    """

    folder: Path
    scale: Scale

    @classmethod
    def of(cls, name: str, folder: Path = RESULTS) -> Results:
        """Those of the scale of that name.

        Raises:
            InputError: there is no such scale under `folder`.
        """
        file = Path(folder) / name / SCALE
        if not file.is_file():
            known = ", ".join(scales(folder)) or "none"
            raise InputError(f"no scale {name!r} under {folder} (there is {known}); measure something of it first.")
        facts = read_json(file)
        try:
            n_hat = {float(factor): count for factor, count in facts["n_hat"].items()}
            scale = Scale(name, facts["title"], RopeGeometry(**facts["geometry"]), n_hat, tuple(facts["ablated"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{file} does not say what the scale is ({error!r}); measure it again.") from error
        return cls(Path(folder), scale)

    def records(self, experiment: str) -> list[dict]:
        """All of an experiment, in the order of their files' names; each says under "file" which one it is."""
        return _read(self.folder / self.scale.name / experiment)

    def require(self, experiment: str) -> list[dict]:
        """The same, or NotMeasured where there is none."""
        found = self.records(experiment)
        if not found:
            raise NotMeasured(
                f"no record of {experiment} under {self.folder / self.scale.name}; make one with "
                f"`python -m experiments.{experiment}`."
            )
        return found

    def experiments(self) -> list[str]:
        """Those that have records."""
        return sorted({file.parent.name for file in (self.folder / self.scale.name).glob("*/*.json")})


def scales(folder: Path = RESULTS) -> list[str]:
    """The scales that have records under `folder`."""
    return sorted(file.parent.name for file in Path(folder).glob(f"*/{SCALE}"))


def every(folder: Path = RESULTS) -> Iterator[Results]:
    """The results of each scale."""
    return (Results.of(name, folder) for name in scales(folder))


def root(folder: Path) -> Path:
    """Where what is rendered from records under `folder` belongs: beside them."""
    return Path(folder).resolve().parent


def read_json(file: Path) -> dict:
    """An object of JSON, or InputError: a torn file, no object, or a number that is none, which no score may be."""

    def refuse(constant: str) -> float:
        raise ValueError(f"it holds {constant}")

    try:
        found = json.loads(file.read_text(encoding="utf-8"), parse_constant=refuse)
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {file} ({error}); remove it and measure again.") from error
    return found


@functools.lru_cache(maxsize=256)
def _read(folder: Path) -> list[dict]:
    return [read_json(file) | {"file": file.stem} for file in sorted(folder.glob("*.json"))]
