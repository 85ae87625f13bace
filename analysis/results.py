"""The records of a model, read once, and its facts from model.json."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from analysis import record_types
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit import records
from experiments.kit.records import BEYOND, MODEL, OWN, RESULTS, ROOT


class NotMeasured(InputError):
    """There is no record of what was asked for; the message names the command that makes one."""


@dataclass(frozen=True)
class Model:
    """A base model.

    Attributes:
        name: the name of its folder under results/.
        title: its name in tables and figures.
        plain: d, base and L of pre-training; None if no method can extend the model.
        context_length: L in tokens.
        n_hat: n̂ by scaling factor, where it is set by hand.
        ablated: the options that the suite's ablations vary; values other than the model's own go to their tables.
    """

    name: str
    title: str
    plain: RopeGeometry | None
    context_length: int
    n_hat: dict[float, int] = field(default_factory=dict, hash=False)
    ablated: tuple[str, ...] = ()

    @property
    def geometry(self) -> RopeGeometry:
        """d, base and L; NotMeasured if no method can extend the model."""
        if self.plain is None:
            raise NotMeasured(f"{self.name} has no plain RoPE, so nothing of its geometry is known.")
        return self.plain


@dataclass(frozen=True)
class Results:
    """A model's records.

    Attributes:
        folder: the folder of all models' records: results/, or one that a rerun wrote.
        model: the model of these records.
    """

    folder: Path
    model: Model

    @classmethod
    def of(cls, name: str, folder: Path = RESULTS) -> Results:
        """The records of the model called `name`.

        Raises:
            InputError: there is no such model under `folder`, or its model.json is incomplete.
        """
        file = Path(folder) / name / MODEL
        if not file.is_file():
            known = ", ".join(models(folder)) or "none"
            raise InputError(f"no model {name!r} under {folder} (there is {known}); measure something of it first.")
        facts = record_types.read(file, MODEL)
        n_hat = {float(factor): count for factor, count in facts["n_hat"].items()}
        stated = facts["geometry"]
        extends = list(stated) != ["context_length"]
        geometry = RopeGeometry(*(stated[key.name] for key in fields(RopeGeometry))) if extends else None
        model = Model(name, facts["title"], geometry, stated["context_length"], n_hat, tuple(facts["ablated"]))
        return cls(Path(folder), model)

    @property
    def quick(self) -> bool:
        """Whether `make … QUICK=1` wrote the records, by the name of its folder."""
        return any(part.endswith("-quick") for part in self.folder.absolute().parts)

    def records(self, experiment: str) -> list[dict]:
        """All records of an experiment, sorted by file name; "file" in each is its file's name without the suffix."""
        return _read(records.folder(self.folder, self.model.name, experiment))

    def require(self, experiment: str) -> list[dict]:
        """:meth:`records`, or NotMeasured if there is none."""
        recorded = self.records(experiment)
        if not recorded:
            folder = records.folder(self.folder, self.model.name, experiment)
            raise NotMeasured(f"no record in {folder}; make one with `{self.command(experiment)}`.")
        return recorded

    def lacks(self, what: str, experiment: str, options: str = "") -> NotMeasured:
        """The error that records hold nothing of what was asked for; `experiment` with `options` measures it."""
        command = self.command(experiment, options)
        return NotMeasured(f"no {what} under {self.folder / self.model.name}; measure it with `{command}`.")

    def command(self, experiment: str, options: str = "") -> str:
        """The command that measures this model into this folder."""
        known = self.model.name in _known()
        model = self.model.name if known else f"PATH/{self.model.name}"  # records do not say where a model is
        words = ["python", "-m", records.program(experiment), "--model", model, *options.split()]
        default = RESULTS if known else OWN
        return shlex.join(words + ([] if self.folder.resolve() == default else ["--results", str(self.folder)]))

    def experiments(self) -> list[str]:
        """The experiments that have records."""
        folder = self.folder / self.model.name
        return sorted({file.parent.name for file in [*folder.glob("*/*.json"), *folder.glob(f"{BEYOND}/*/*.json")]})


def models(folder: Path = RESULTS) -> list[str]:
    """The models that have records under `folder`; under results/ only known ones, so that no other is claimed."""
    names = sorted(file.parent.name for file in Path(folder).glob(f"*/{MODEL}"))
    return [name for name in names if name in _known()] if Path(folder).resolve() == RESULTS else names


@functools.cache
def _known() -> set[str]:
    """The names of the known models, from their files: what the files say is not needed to read records."""
    files = (ROOT / "experiments" / "base_models").rglob("*.py")
    return {file.stem.replace("_", "-") for file in files if "\nMODEL = " in file.read_text(encoding="utf-8")}


def place(model: str | None, asked: Path | None = None) -> Path:
    """The folder of records to read: the one asked for, else the one that has the model's, the committed ones first."""
    elsewhere = model is not None and model not in models(RESULTS) and model in models(OWN)
    return asked or (OWN if elsewhere else RESULTS)


def every(folder: Path = RESULTS) -> Iterator[Results]:
    """The results of each model."""
    return (Results.of(name, folder) for name in models(folder))


def root(folder: Path) -> Path:
    """The folder for what is rendered from the records under `folder`: the one that holds `folder`."""
    return Path(folder).resolve().parent


@functools.lru_cache(maxsize=256)
def _read(folder: Path) -> list[dict]:
    return [record_types.read(file, folder.name) | {"file": file.stem} for file in sorted(folder.glob("*.json"))]
