"""The records of a model, read once, and its facts from model.json."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import records
from core.errors import InputError, meant
from core.geometry import RopeGeometry
from records import BEYOND, MODEL, OWN, RESULTS


class NotMeasured(InputError):
    """There is no record of what is to be shown; the message names the command that makes one."""


@dataclass(frozen=True, eq=False)
class Record:
    """A record, see :mod:`records`. It equals itself alone, so that what is computed of it can be
    kept.

    Attributes:
        path: of its file.
        run: what was asked.
        identity: a hash of it.
        scores: what came out.
        base: what identifies the base model of an evaluated one; None of others.
        comparable: the names of those parts of `run` that must agree, with `base`, in one table;
            None where there is no such table.
        data_facts: of training: the data; None of others.
    """

    path: Path
    run: dict
    identity: str
    scores: dict
    base: dict | None
    comparable: list[str] | None
    data_facts: dict | None

    @property
    def file(self) -> str:
        """The name of its file, without the suffix."""
        return self.path.stem

    @property
    def training(self) -> dict | None:
        """What is known of the training of the model that was measured; None without training."""
        return self.run.get("training")

    @property
    def seed(self) -> int | None:
        """The seed of that training."""
        return self.training["seed"] if self.training else None

    @property
    def benchmark(self) -> str | None:
        """The benchmark that generated samples imitate; None of a benchmark's own samples."""
        return self.run.get("benchmark")

    @property
    def alike(self) -> dict:
        """What must agree in one table."""
        return {"base": self.base} | {name: self.run.get(name) for name in self.comparable or ()}


def read(file: Path) -> Record:
    """A record; InputError if it cannot be read, or is no record."""
    content = records.read(file)
    _, *parts = fields(Record)
    return Record(file, *(content.get(part.name) for part in parts))


@dataclass(frozen=True)
class Results:
    """What is known of a model, and its records.

    Attributes:
        folder: the folder of all models' records: results/, or one that a rerun wrote.
        name: the name of the model's folder in it.
        title: the model's name in tables and figures.
        plain: the RoPE that methods start from; None if no method can extend the model.
        context_length: L in tokens.
        factors: the scaling factors s that its suite measures, ascending.
        n_hat: n̂ by scaling factor, where it is set by hand.
        ablated: the options that the suite's ablations vary; values other than the model's own go
            to their tables.
        part: the folder below beyond/ that holds the records, such as "h200", where they stand
            apart from the model's others; else empty.
    """

    folder: Path
    name: str
    title: str
    plain: RopeGeometry | None
    context_length: int
    factors: tuple[float, ...]
    n_hat: dict[float, int] = field(hash=False)
    ablated: tuple[str, ...]
    part: str = ""

    @classmethod
    def of(cls, name: str, folder: Path = RESULTS) -> Results:
        """The records of the model called `name`.

        Raises:
            InputError: there is no such model under `folder`, or its model.json is incomplete.
        """
        file = Path(folder) / name / MODEL
        if not file.is_file():
            names = ", ".join(models(folder)) or "none"
            name = f"{name!r}{meant(name, models(folder))}"
            raise InputError(
                f"no model {name} under {folder} (there is {names}); measure something of it first."
            )
        facts = records.read_model(file)
        rope = facts["geometry"]
        return cls(
            folder=Path(folder),
            name=name,
            title=facts["title"],
            plain=RopeGeometry(**rope) if "base" in rope else None,
            context_length=rope["context_length"],
            factors=tuple(map(float, facts["factors"])),
            n_hat={float(factor): count for factor, count in facts["n_hat"].items()},
            ablated=tuple(facts["ablated"]),
        )

    @property
    def geometry(self) -> RopeGeometry:
        """The RoPE that methods start from; NotMeasured if no method can extend the model."""
        if self.plain is None:
            raise NotMeasured(
                f"{self.name} has RoPE that no method extends, so nothing of its geometry is known."
            )
        return self.plain

    @property
    def is_quick(self) -> bool:
        """Whether these are of `make rerun QUICK=1`, which measures a sketch and decides
        nothing."""
        return records.is_sketch(self.folder)

    def records(self, experiment: str) -> list[Record]:
        """All records of an experiment, sorted by file name."""
        if self.part:
            return _read(self.folder / self.name / BEYOND / self.part / experiment)
        return _read(records.folder(self.folder, self.name, experiment))

    def parts(self) -> list[Results]:
        """The records that stand apart from these, by folder."""
        files = (self.folder / self.name / BEYOND).glob("*/*/*.json")
        names = sorted({file.parts[-3] for file in files})
        return [replace(self, part=name) for name in names]

    def require(self, experiment: str) -> list[Record]:
        """:meth:`records`, or NotMeasured if there is none."""
        if recorded := self.records(experiment):
            return recorded
        raise self.lacks(f"record of {experiment}", experiment)

    def lacks(self, what: str, experiment: str, options: str = "") -> NotMeasured:
        """The error that records hold nothing of `what`; `experiment` with `options` measures
        it."""
        where = f"--model {self.name} --results {self.folder}"
        command = f"python -m {records.program(experiment)} {where} {options}".strip()
        return NotMeasured(
            f"no {what} under {self.folder / self.name}; measure it with `{command}`."
        )

    def experiments(self) -> list[str]:
        """The experiments that have records."""
        folder = self.folder / self.name
        patterns = ("*/*.json", f"{BEYOND}/*/*.json")
        return sorted({file.parent.name for each in patterns for file in folder.glob(each)})


def models(folder: Path = RESULTS) -> list[str]:
    """The models that have records under `folder`."""
    return sorted(file.parent.name for file in Path(folder).glob(f"*/{MODEL}"))


def chosen(model: str | None, folder: Path | None = None) -> tuple[str | None, Path]:
    """The name of the model that --model gives, and the folder of its records: `folder`, else the
    committed ones first.

    A checkpoint's path and a name on the hub are those under which experiments record them, apart
    from the committed; but a fine-tune on the hub is not looked up, and has its base's.
    """
    if model is None or model in models(folder or RESULTS):
        return model, folder or RESULTS
    from experiments.kit import model as models_of  # with torch, which committed records do without

    name = models_of.own_name(model)
    if Path(model).is_dir():
        # a fine-tune and an export have the name of the model that they began with
        name = models_of.resolve(model, as_it_is=True, beside=folder).folder
    return name, folder or (RESULTS if name == model and name not in models(OWN) else OWN)


def every(folder: Path = RESULTS) -> Iterator[Results]:
    """The results of each model."""
    return (Results.of(name, folder) for name in models(folder))


def root(folder: Path) -> Path:
    """The folder for what is rendered from the records under `folder`: the one that holds
    `folder`."""
    return Path(folder).resolve().parent


@functools.cache
def _read(folder: Path) -> list[Record]:
    return [read(file) for file in sorted(folder.glob("*.json"))]
