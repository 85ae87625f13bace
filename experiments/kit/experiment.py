"""An experiment: what is asked, how an answer is measured, and how all are summed up. And the loop
that measures it.

    python -m experiments.NAME --model NAME|DIRECTORY|HUB_NAME --method pi yarn --factor 2

The loop is three functions: :func:`plan`, :func:`measure`, :func:`record`. A run that is recorded
is skipped; a killed one goes on from its journal; the processes of `accelerate launch` or
`torchrun` divide the samples; the record is written once, when all are measured.
"""

from __future__ import annotations

import functools
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

import records
from core import files, rope
from core.errors import InputError, NonFiniteError
from core.setting import Setting
from experiments.kit import command_line, processes
from experiments.kit.command import ALL, Command
from experiments.kit.engine import Engine
from records import journal

MINIATURE = "miniature.json"  # beside generated samples: the benchmark that they imitate
_OF_TRAINING = "seed", "steps", "length", "per_book"


@dataclass(frozen=True)
class Prepared:
    """What an experiment asks of every method alike.

    Attributes:
        samples: by key, in the order in which they are measured.
        settings: everything else that changes a score, as records state it; records of other
            settings stand in another table.
        data: what identifies the samples in records.
        suffix: the end of the record's name, where records of several settings of one method are
            kept.
        noted: what changes a score, too, as records state it; but one table shows it beside others.
    """

    samples: dict[str, Any]
    settings: dict
    data: dict
    suffix: str = ""
    noted: dict = field(default_factory=dict)


class Experiment(Command):
    """A subclass states a name and a unit, and says the following; its module's docstring is the
    script's text."""

    @staticmethod
    def add_options(parser: command_line.Parser) -> None:
        """Add its own options, besides those of the model, the methods and the records."""

    def prepare(self) -> Prepared:
        """What is asked; bad input is refused here. The tokenizer may be read, the weights may
        not."""
        raise NotImplementedError

    def requests(self, keys: list[str], context_length: int) -> list:
        """What the model is asked for these samples: by default each with its key.

        What the model cannot read is refused here; no weights are loaded yet.

        Args:
            context_length: that of the model with the run's method, in tokens.
        """
        return [(key, self.prepared.samples[key]) for key in keys]

    def measure(self, model, requests: list) -> Iterator[tuple[str, object]]:
        """The key and the value of each sample, as it is known.

        Args:
            model: what the engine has extended: with the run's method.
        """
        raise NotImplementedError

    def summary(self, values: dict) -> dict:
        """The scores of all samples, as the record states them."""
        raise NotImplementedError

    def beside(self, values: dict) -> dict:
        """What else a record says of all samples, beside their scores."""
        return {}

    # What every experiment has.

    @classmethod
    def add_arguments(cls, parser: command_line.Parser) -> None:
        command_line.add_method_arguments(parser, several=ALL)
        command_line.add_dtype_argument(parser)
        cls.add_options(parser)

    @functools.cached_property
    def engine(self) -> Engine:
        """What computes."""
        return Engine(self)

    @functools.cached_property
    def prepared(self) -> Prepared:
        """What is asked, prepared once."""
        return self.prepare()

    def run_length(self, method: str | None) -> int:
        """The context length of the model with a run's method, in tokens."""
        if method is None or self.model.extension:
            return self.model.stated_length
        return self.extended_length

    @property
    def benchmark(self) -> Path | None:
        """The benchmark's folder in --benchmarks; None for the hub's copy."""
        folder = self.arguments.benchmarks and self.arguments.benchmarks / self.name
        if folder and not folder.is_dir():
            raise InputError(
                f"{self.arguments.benchmarks} has no folder {self.name}; put the benchmark's "
                f"files there."
            )
        return folder

    @property
    def imitated(self) -> dict:
        """What a record says of generated samples that imitate a benchmark; empty for a benchmark's
        own samples."""
        file = self.benchmark and self.benchmark / MINIATURE
        return files.read_json(file, "make the samples again") if file and file.is_file() else {}

    def run(self) -> None:
        """Measure every run that is not yet recorded."""
        self.join()
        for run in plan(self):
            measured = measure(self, run)
            if processes.is_first():
                record(self, run, measured)


@dataclass(frozen=True)
class Run:
    """One record that is to be measured.

    Attributes:
        method: None for a checkpoint as it is.
        options: the method's, with whole paths.
        asked: what the record states as "run".
        comparable: those parts of it that must agree in one table.
        file: of the record.
    """

    method: str | None
    options: dict
    asked: dict
    comparable: list[str]
    file: Path


def plan(experiment: Experiment) -> Iterator[Run]:
    """The runs that are not recorded; whether the next one is, is looked at when it is its turn."""
    comparison = experiment.comparison()  # a wrong method is refused before the samples are made
    engine = experiment.engine  # and so is a server that cannot be used
    prepared = experiment.prepared
    for method, options in comparison:
        of_engine, apart = engine.facts()
        run = asked(experiment, method, options) | of_engine
        name = records.run_of(run) if method else "as-it-is"
        experiment.check_place(name)
        file = experiment.to_measure(run, name + prepared.suffix)
        if file:
            comparable = ["dtype", *prepared.settings, "data", *apart]
            yield Run(method, options, run, comparable, file)


def asked(experiment: Experiment, method: str | None, options: dict) -> dict:
    """What a record states as "run", in this order; the engine adds its own."""
    model = experiment.model
    prepared = experiment.prepared
    run = {
        "scale": model.folder,
        "experiment": experiment.name,
        "factor": experiment.factor,
        **prepared.settings,
        "model": model.identity,
        "dtype": experiment.engine.dtype,
        "data": prepared.data,
    }
    if method and (model.before or not model.extension):
        run |= records.of_method(model.geometry, method, experiment.factor, options)
    if model.training:
        run["training"] = _training_facts(experiment)
    if method is None:
        run |= {"method": None, "factor": 1.0, "options": {}}
    else:
        run |= {"method": method, "options": rope.stated_options(method, options)}
    return run | prepared.noted


def _training_facts(experiment: Experiment) -> dict:
    """What a record says of the training of a fine-tune; InputError if the project's records hold
    another one of its name."""
    model = experiment.model
    training = model.training
    run = training["run"]
    facts = {
        "identity": training["identity"],
        **{key: run[key] for key in _OF_TRAINING if key in run},
        "settings": records.identity(**run | {"seed": None}),
    }
    file = records.path(experiment.results, model.folder, "finetune", model.identity["source"])
    known = file.is_file() and records.read(file)["identity"]
    if experiment.results.resolve() == records.RESULTS and known != training["identity"]:
        raise InputError(
            f"{file} is not of this fine-tune; give another --results for its evaluations."
        )
    return facts


def measure(experiment: Experiment, run: Run) -> dict[str, dict]:
    """Measure the samples, but for those that are in the journal of an earlier call.

    Returns:
        {"value", "seconds"} by key.
    """
    keys = list(experiment.prepared.samples)
    identity = experiment.engine.journal_identity(records.identity(**run.asked))
    path = experiment.journals(identity)
    process, count = processes.rank()

    # Every process reads all journals before any process writes more.
    done = journal.read_all(path)
    processes.barrier()
    todo = [key for key in keys if key not in done][process::count]
    if todo:
        requests = experiment.requests(todo, experiment.run_length(run.method))
        if process == 0:
            _announce(experiment, run)
        # Weights that do not fit are refused before a journal is begun.
        model = experiment.engine.extended(run.method, run.options)
        name = run.file.stem
        with (
            journal.opened(path.with_name(f"{path.name}.{process}.jsonl")) as lines,
            tqdm(
                total=len(keys), initial=len(keys) - len(todo), desc=name, disable=process > 0
            ) as bar,
        ):
            started = time.perf_counter()
            try:
                for key, value in experiment.measure(model, requests):
                    now = time.perf_counter()
                    lines.add(key, {"value": value, "seconds": round(now - started, 3)})
                    started = now
                    bar.update(1)
            except NonFiniteError as error:
                raise NonFiniteError(f"{name}: {error}") from error
    processes.barrier()
    done = journal.read_all(path)
    return {key: done[key] for key in keys}


def _announce(experiment: Experiment, run: Run) -> None:
    """Say what is about to be measured."""
    prepared = experiment.prepared
    count = len(prepared.samples)
    samples = "1 sample" if count == 1 else f"{count:,} samples"
    stated = "".join(f"; {key} {value}" for key, value in prepared.settings.items())
    if "engine" in run.asked:
        stated += f"; engine {run.asked['engine']}"
    by = f" by {Setting.make(run.method, run.options).name}" if run.method else ""
    print(
        f"{experiment.name} of {experiment.model.folder}{by}, {run.file.stem}: {samples}"
        f"{textwrap.shorten(stated, 160)}",
        file=sys.stderr,
    )


def record(experiment: Experiment, run: Run, measured: dict[str, dict]) -> None:
    """Write what was measured.

    Args:
        measured: {"value", "seconds"} by key.
    """
    before = experiment.model.before_training
    files_of_base = {key: before[key] for key in ("tokenizer", "config") if key in before}
    values = {key: entry["value"] for key, entry in measured.items()}
    experiment.finish(
        run.file,
        run.asked,
        base=before["sha256"] | files_of_base,
        comparable=run.comparable,
        scores=experiment.summary(values),
        **experiment.beside(values),
        seconds=sum(entry["seconds"] for entry in measured.values()),
        of_machine=experiment.engine.of_machine(),
    )
