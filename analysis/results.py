"""The records of a scale, read once, and the facts of its model from scale.json."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from analysis import record_types
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.lab.records import RESULTS, SCALE


class NotMeasured(InputError):
    """There is no record of what was asked for; the message names the command that makes one."""


@dataclass(frozen=True)
class Scale:
    """A base model.

    Attributes:
        name: the name of its folder under results/.
        title: its name in tables and figures.
        geometry: d, base and L.
        n_hat: n̂ by scaling factor, where it is set by hand.
        ablated: the options that the suite's ablations vary; values other than the scale's own go to their tables.
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
        folder: the folder of all scales' records: results/, or one that a rerun wrote.
        scale: the scale of these records.
    """

    folder: Path
    scale: Scale

    @classmethod
    def of(cls, name: str, folder: Path = RESULTS) -> Results:
        """The records of the scale called `name`.

        Raises:
            InputError: there is no such scale under `folder`, or its scale.json is incomplete.
        """
        file = Path(folder) / name / SCALE
        if not file.is_file():
            known = ", ".join(scales(folder)) or "none"
            raise InputError(f"no scale {name!r} under {folder} (there is {known}); measure something of it first.")
        facts = record_types.read(file, SCALE)
        n_hat = {float(factor): count for factor, count in facts["n_hat"].items()}
        geometry = RopeGeometry(*(facts["geometry"][key.name] for key in fields(RopeGeometry)))
        return cls(Path(folder), Scale(name, facts["title"], geometry, n_hat, tuple(facts["ablated"])))

    def records(self, experiment: str) -> list[dict]:
        """All records of an experiment, sorted by file name; "file" in each is its file's name without the suffix."""
        return _read(self.folder / self.scale.name / experiment)

    def require(self, experiment: str) -> list[dict]:
        """:meth:`records`, or NotMeasured if there is none."""
        found = self.records(experiment)
        if not found:
            raise NotMeasured(
                f"no record of {experiment} under {self.folder / self.scale.name}; make one with "
                f"`python -m experiments.{experiment}`."
            )
        return found

    def experiments(self) -> list[str]:
        """The experiments that have records."""
        return sorted({file.parent.name for file in (self.folder / self.scale.name).glob("*/*.json")})


def scales(folder: Path = RESULTS) -> list[str]:
    """The scales that have records under `folder`."""
    return sorted(file.parent.name for file in Path(folder).glob(f"*/{SCALE}"))


def every(folder: Path = RESULTS) -> Iterator[Results]:
    """The results of each scale."""
    return (Results.of(name, folder) for name in scales(folder))


def root(folder: Path) -> Path:
    """The folder for what is rendered from the records under `folder`: the one that holds `folder`."""
    return Path(folder).resolve().parent


@functools.lru_cache(maxsize=256)
def _read(folder: Path) -> list[dict]:
    return [record_types.read(file, folder.name) | {"file": file.stem} for file in sorted(folder.glob("*.json"))]
