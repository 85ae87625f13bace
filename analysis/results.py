"""The records of a model, read once, and its facts from model.json."""

from __future__ import annotations

import functools
import json
import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit import records
from experiments.kit.records import BEYOND, MODEL, OWN, RESULTS, ROOT

_REMEDY = "another version or another hand wrote it; remove it and measure again"


class NotMeasured(InputError):
    """There is no record of what is to be shown; the message names the command that makes one."""


class Entries(dict):
    """An object in a record. Looking up a key that it lacks raises an InputError that names the file."""

    file: Path

    def __missing__(self, key: object) -> object:
        raise InputError(f"{self.file} does not say {key!r}; {_REMEDY}.")


def read(file: Path) -> Entries:
    """A record; each object in it is an :class:`Entries`.

    Raises:
        InputError: the file cannot be read, is no JSON object, or holds a number that is not finite.
    """

    def entries(pairs: dict) -> Entries:
        record = Entries(pairs)
        record.file = file
        return record

    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        record = json.loads(text, object_hook=entries, parse_float=_finite, parse_constant=_finite)
    except _NotFinite as number:
        key = re.search(rf'"([^"]*)":[^":]*{re.escape(str(number))}', text)
        raise InputError(f"{file} says {key and key[1]!r} is {number}; {_REMEDY}.") from number
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {error}; {_REMEDY}.") from error
    if not isinstance(record, Entries):
        raise InputError(f"{file} is no JSON object; {_REMEDY}.")
    return record


class _NotFinite(ValueError):
    """A number in a record that is not finite, as it is written."""


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise _NotFinite(written)
    return number


@dataclass(frozen=True)
class Model:
    """A base model.

    Attributes:
        name: the name of its folder under results/.
        title: its name in tables and figures.
        plain: d, base and L of pre-training; None if no method can extend the model.
        context_length: L in tokens.
        factors: the scaling factors s that its suite measures, ascending.
        n_hat: n̂ by scaling factor, where it is set by hand.
        ablated: the options that the suite's ablations vary; values other than the model's own go to their tables.
    """

    name: str
    title: str
    plain: RopeGeometry | None
    context_length: int
    factors: tuple[float, ...] = ()
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
            names = ", ".join(models(folder)) or "none"
            raise InputError(f"no model {name!r} under {folder} (there is {names}); measure something of it first.")
        facts = read(file)
        n_hat = {float(factor): count for factor, count in facts["n_hat"].items()}
        rope = facts["geometry"]
        extends = list(rope) != ["context_length"]
        geometry = RopeGeometry(*(rope[key.name] for key in fields(RopeGeometry))) if extends else None
        model = Model(
            name,
            facts["title"],
            geometry,
            rope["context_length"],
            tuple(map(float, facts["factors"])),
            n_hat,
            tuple(facts["ablated"]),
        )
        return cls(Path(folder), model)

    @property
    def quick(self) -> bool:
        """Whether `QUICK=1` wrote the records, by the name of its folder."""
        return any(name.endswith("-quick") for name in self.folder.absolute().parts)

    def records(self, experiment: str) -> list[Entries]:
        """All records of an experiment, sorted by file name; "file" in each is its file's name without the suffix."""
        return _read(records.folder(self.folder, self.model.name, experiment))

    def require(self, experiment: str) -> list[Entries]:
        """:meth:`records`, or NotMeasured if there is none."""
        recorded = self.records(experiment)
        if not recorded:
            folder = records.folder(self.folder, self.model.name, experiment)
            raise NotMeasured(f"no record in {folder}; make one with `{self.command(experiment)}`.")
        return recorded

    def lacks(self, what: str, experiment: str, options: str = "") -> NotMeasured:
        """The error that records hold nothing of `what`; `experiment` with `options` measures it."""
        command = self.command(experiment, options)
        return NotMeasured(f"no {what} under {self.folder / self.model.name}; measure it with `{command}`.")

    def command(self, experiment: str, options: str = "") -> str:
        """The command that measures this model into this folder."""
        is_known = self.model.name in _known()
        model = self.model.name if is_known else f"PATH/{self.model.name}"  # records do not say where a model is
        words = ["python", "-m", records.program(experiment), "--model", model, *options.split()]
        default = RESULTS if is_known else OWN
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


def folder_of(model: str | None, folder: Path | None = None) -> Path:
    """The folder of records to read: `folder` if it is one, else that of the model's, the committed ones first."""
    elsewhere = model is not None and model not in models(RESULTS) and model in models(OWN)
    return folder or (OWN if elsewhere else RESULTS)


def every(folder: Path = RESULTS) -> Iterator[Results]:
    """The results of each model."""
    return (Results.of(name, folder) for name in models(folder))


def root(folder: Path) -> Path:
    """The folder for what is rendered from the records under `folder`: the one that holds `folder`."""
    return Path(folder).resolve().parent


@functools.lru_cache(maxsize=256)
def _read(folder: Path) -> list[Entries]:
    records = []
    for file in sorted(folder.glob("*.json")):
        record = read(file)
        record["file"] = file.stem
        records.append(record)
    return records
