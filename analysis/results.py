"""The records of a scale, read once, and what scale.json says they are of."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from analysis import shapes
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
            InputError: there is no such scale under `folder`, or its file does not say what it is.
        """
        file = Path(folder) / name / SCALE
        if not file.is_file():
            known = ", ".join(scales(folder)) or "none"
            raise InputError(f"no scale {name!r} under {folder} (there is {known}); measure something of it first.")
        facts = shapes.read(file, SCALE)
        n_hat = {float(factor): count for factor, count in facts["n_hat"].items()}
        geometry = RopeGeometry(*(facts["geometry"][key.name] for key in fields(RopeGeometry)))
        return cls(Path(folder), Scale(name, facts["title"], geometry, n_hat, tuple(facts["ablated"])))

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


@functools.lru_cache(maxsize=256)
def _read(folder: Path) -> list[dict]:
    return [shapes.read(file, folder.name) | {"file": file.stem} for file in sorted(folder.glob("*.json"))]
