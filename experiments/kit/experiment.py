"""The life of an experiment: command line, runs, samples, journal, processes, and one record a run.

    python -m experiments.NAME --model NAME|DIRECTORY|HUB_NAME --method pi yarn --factor 2

An experiment is a class that says what is asked, how an answer is measured, and how all are summed
up. The rest is here: a run that is recorded is skipped; a killed one goes on from its journal; the
processes of `accelerate launch` or `torchrun` divide the samples; the record is written once, when
all are measured.
"""

from __future__ import annotations

import argparse
import functools
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tqdm import tqdm

from core import files, rope
from core.discovery import later
from core.errors import InputError, NonFiniteError
from eval import special_tokens
from experiments import base_models, suites
from experiments.base_models.model import BaseModel
from experiments.kit import command_line, journal, processes, records
from experiments.suites import suite

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from experiments.kit.checkpoint import Checkpoint

extend = later("core.extend")
checkpoint = later("experiments.kit.checkpoint")

ALL = "for a base model, all that need no training; else the checkpoint as it is"
TEXTS = {"packaged", "parts", "plays", "texts"}  # whoever chooses by one of them needs no other
# Chosen for a suite's --lengths: other lengths leave them to the script.
OF_LENGTHS = {"stride", "tokens"}
_OF_TRAINING = "seed", "steps", "length", "per_book"


@dataclass(frozen=True)
class Prepared:
    """What an experiment asks of every method alike.

    Attributes:
        samples: by key, in the order in which they are measured.
        settings: everything else that changes a score, as records state it.
        data: what identifies the samples in records; often :func:`content_of`.
        suffix: the end of the record's name, where records of several settings of one method are
            kept.
    """

    samples: dict[str, Any]
    settings: dict
    data: dict
    suffix: str = ""


class Experiment:
    """One experiment. A subclass states or overrides the following; its module's docstring is the
    script's text.

    Attributes:
        name: of its script and of its folder of records.
        unit: what a score is, in words; a run ends with it.
        methods: the words for the methods that are measured if none are given; None if it compares
            no methods.
        evaluates: False if it makes a model instead, and loads the weights itself.
    """

    name: ClassVar[str]
    unit: ClassVar[str] = ""
    methods: ClassVar[str | None] = ALL
    evaluates: ClassVar[bool] = True

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        """Its own options, besides those of the model, the methods and the records."""

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

    def measure(self, model: PreTrainedModel, requests: list) -> Iterator[tuple[str, object]]:
        """The key and the value of each sample, as it is known.

        Args:
            model: with the run's method.
        """
        raise NotImplementedError

    def summary(self, values: dict) -> dict:
        """The scores of all samples, as the record states them."""
        raise NotImplementedError

    def rows(self, scores: dict) -> Iterable[tuple[str, ...]]:
        """What the script prints of a record: by default every mean, with its interval."""
        return records.rows(scores)

    # What every experiment has.

    def __init__(self, arguments: argparse.Namespace, base: Checkpoint) -> None:
        self.arguments = arguments
        self.base = base
        self.results: Path = arguments.results or base.results
        self.serving: Any = None  # the server that computes instead of this process, if any
        self._loaded: PreTrainedModel | None = None
        self.factor = self.chosen_factor(arguments, base)

    @classmethod
    def main(cls) -> None:
        """The script: reads the command line and measures what is not yet recorded."""
        arguments, base = cls.read_command_line()
        if cls.evaluates:
            base.check_access()
            processes.join()  # before a model can be loaded
        cls(arguments, base).run()

    @classmethod
    def read_command_line(cls) -> tuple[argparse.Namespace, Checkpoint]:
        """The options and the model; what the command line leaves open is as the model's suite has
        it, if it can be extended."""
        parser = cls.parser()
        arguments, stated = parser.read()
        if arguments.help:
            known = base_models.MODELS.get(arguments.model)
            if known:
                model = replace(known, factors=(arguments.factor,))
                options = suite_options(parser, stated, cls.name, arguments.model, model)
                parser.set_defaults(**options)
            parser.print_help()
            sys.exit(0)
        if cls.methods is not None:
            command_line.check_method(arguments)
        as_it_is = not getattr(arguments, "method", None)
        base = checkpoint.Checkpoint(arguments.model, as_it_is, arguments.results)
        factor = cls.chosen_factor(arguments, base)
        if "factor" in stated and base.extension and arguments.factor != factor:
            raise InputError(
                f"{base.name} was extended by s = {factor:g}; leave out --factor, or give the "
                f"model that it was made from."
            )
        if base.origin or base.extends:
            known = base.origin or BaseModel(base.folder, base.name, base.geometry)
            model = replace(known, factors=(factor,))
            vars(arguments).update(suite_options(parser, stated, cls.name, base.folder, model))
        return arguments, base

    @classmethod
    def chosen_factor(cls, arguments: argparse.Namespace, base: Checkpoint) -> float:
        """s: that by which the checkpoint was extended, else that of --factor; 1 for a model that
        no method can extend."""
        if cls.methods is None and base.training:
            return base.training["run"]["factor"]
        if cls.methods is not None and base.extension:
            return base.extension["factor"]
        return arguments.factor if base.extends else 1

    @classmethod
    def parser(cls) -> command_line.Parser:
        """The parser of the script's command line."""
        text = sys.modules[cls.__module__].__doc__ or ""
        program = f"python -m {records.program(cls.name)}"
        parser = command_line.parser(text, prog=program, add_help=False)
        parser.add_argument("-h", "--help", action="store_true", help="show this text and end")
        base_models.add_argument(parser)
        if cls.methods is not None:
            command_line.add_method_arguments(parser, several=cls.methods)
        else:
            command_line.add_factor_argument(parser)
        if cls.evaluates:
            command_line.add_dtype_argument(parser)
        cls.add_options(parser)
        command_line.add_records_arguments(parser)
        return parser

    def run(self) -> None:
        """Measure every run that is not yet recorded."""
        comparison = self.comparison()
        prepared = self.prepared
        for method, options in comparison:
            run = self.asked(method, options)
            apart: list[str] = []
            if self.serving:
                engine, apart = self.serving.facts()
                run |= engine
            name = self.run_name(run)
            if self.methods is not None:
                self.check_place(name)
            file = self.to_measure(run, name + prepared.suffix)
            if file is None:
                continue
            measured = self.measured(file, run, options)
            if measured is None:
                continue
            values = {key: entry["value"] for key, entry in measured.items()}
            before = self.base.before_training
            files_of_base = {key: before[key] for key in ("tokenizer", "config") if key in before}
            of_machine = {}
            if self.serving:
                of_machine["fingerprints"] = [self.serving.endpoint.fingerprint]
            self.finish(
                file,
                run,
                base=before["sha256"] | files_of_base,
                comparable=["dtype", *prepared.settings, "data", *apart],
                scores=self.summary(values),
                seconds=sum(entry["seconds"] for entry in measured.values()),
                of_machine=of_machine,
            )

    def asked(self, method: str | None, options: dict) -> dict:
        """What the record of a run states as "run"; a server adds its own."""
        run = {
            "scale": self.base.folder,
            "experiment": self.name,
            "factor": self.factor,
            **self.prepared.settings,
            "model": self.base.provenance,
            "dtype": self.dtype,
            "data": self.prepared.data,
        }
        if method and (self.base.exported or not self.base.extension):
            run |= records.computed(self.base.geometry, method, self.factor, options)
        if self.base.training:
            run["training"] = self.training_facts()
        if self.methods is None:
            return run
        if method is None:
            return run | {"method": None, "factor": 1.0, "options": {}}
        return run | {"method": method, "options": rope.stated_options(method, options)}

    def check_place(self, name: str) -> None:
        """Refuses the project's own records for a run of this name that is none of its suite."""
        if self.results.resolve() != records.RESULTS or not self.base.origin:
            return  # a model of one's own is refused as such
        if name not in suite.names(self.base.folder, self.base.origin):
            raise InputError(
                f"{self.results} holds what the model's suite measures, alone, and {name} is no "
                "part of it; give another --results, such as a copy of it."
            )

    def run_name(self, run: dict) -> str:
        """What the name of a run's record begins with."""
        if self.methods is None:
            return f"s={self.factor:g}"
        return records.run_of(run) if run["method"] else "as-it-is"

    def finish(
        self,
        file: Path,
        run: dict,
        *,
        scores: dict,
        seconds: float,
        of_machine: dict | None = None,
        **parts: object,
    ) -> None:
        """Write a record (see :func:`experiments.kit.records.write`); print its scores, and then
        where it is."""
        records.state_model(self.results, self.base.folder, self.facts())
        of_machine = dict(of_machine or {})
        if self._loaded is not None and self._loaded.device.type == "cuda":
            of_machine["attention"] = self._loaded.config._attn_implementation
        written = records.write(
            file, run, **parts, scores=scores, seconds=seconds, of_machine=of_machine
        )
        lines = records.aligned(self.rows(scores))
        if lines and self.unit:
            print(f"{self.unit}:")
        print(*lines, written, sep="\n")

    @functools.cached_property
    def prepared(self) -> Prepared:
        """What is asked, prepared once."""
        return self.prepare()

    @property
    def dtype(self) -> str:
        """The dtype that the model is evaluated in."""
        return self.base.chosen_dtype(self.arguments.dtype)

    @property
    def context_length(self) -> int:
        """L, in tokens."""
        return self.base.context_length

    @property
    def extended_length(self) -> int:
        """L' = s·L, in tokens."""
        return round(self.context_length * self.factor)

    def run_length(self, method: str | None) -> int:
        """The context length of the model with a run's method, in tokens."""
        extends = method is not None and not self.base.extension
        return self.extended_length if extends else self.base.stated_length

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

    @functools.cached_property
    def bos(self) -> list[int]:
        """The ids before a text that is scored: by --bos if the experiment has that option, else by
        the tokenizer."""
        return special_tokens.beginning(self.base.tokenizer, getattr(self.arguments, "bos", None))

    @property
    def loaded(self) -> PreTrainedModel:
        """The model, loaded when first needed, once."""
        if self._loaded is None:
            self._loaded = self.base.load(self.dtype)
        return self._loaded

    def extended(self, method: str | None, options: dict) -> PreTrainedModel:
        """The loaded model with a run's method applied."""
        if method is not None and not self.base.extension:
            extend.extend(self.loaded, method, self.factor, **options)
        return self.loaded

    def comparison(self) -> list[tuple[str | None, dict]]:
        """The (method, options) to run; a method of None means the checkpoint as it is."""
        if self.methods is None:
            return [(None, {})]
        if extension := self.base.extension:
            return [(extension["method"], extension["options"])]
        if self.arguments.method:
            settings = command_line.chosen_methods(self.arguments)
        elif self.base.model:
            settings = self.base.model.comparison(self.factor)
        else:
            return [(None, {})]
        for method, options in settings:  # refuse a wrong method or option before the long work
            rope.scale(self.base.geometry, method, self.factor, **options)
        return settings

    def facts(self) -> dict:
        """The contents of model.json."""
        return self.base.facts(self.factor)

    def training_facts(self) -> dict:
        """What a record says of the training of a fine-tune; InputError if the project's records
        hold another one of its name."""
        training = self.base.training
        run = training["run"]
        facts = {"identity": training["identity"]}
        facts |= {key: run[key] for key in _OF_TRAINING if key in run}
        facts["settings"] = records.identity(**run | {"seed": None})
        file = records.path(
            self.results, self.base.folder, "finetune", self.base.provenance["source"]
        )
        known = file.is_file() and records.read(file)["identity"]
        if self.results.resolve() == records.RESULTS and known != training["identity"]:
            raise InputError(
                f"{file} is not of this fine-tune; give another --results for its evaluations."
            )
        return facts

    def to_measure(self, run: dict, name: str) -> Path | None:
        """The file of a run's record; None, and a line that says so, if it is done.

        Raises:
            InputError: a record of another run, or of another model, is in its place.
        """
        file = records.path(self.results, self.base.folder, self.name, name)
        first = processes.rank()[0] == 0
        if first:
            records.check_model(self.results, self.base.folder, self.facts())
        if not records.is_done(file, run, self.arguments.replace):
            return file
        if first:
            print(f"done already: {file}")
        return None

    def measured(self, file: Path, run: dict, options: dict) -> dict | None:
        """Measure the samples, but for those that are in the journal of an earlier call.

        Args:
            file: of the run's record.
            options: of its method, with whole paths.

        Returns:
            {"value", "seconds"} by key; None in every process but the first.
        """
        keys = list(self.prepared.samples)
        identity = records.identity(**run)
        if self.serving:
            identity = self.serving.journal_identity(identity)
        path = self.journal_path(file, identity)
        process, count = processes.rank()

        # Every process reads all journals before any process writes more.
        done = journal.read_all(path)
        processes.barrier()
        todo = [key for key in keys if key not in done][process::count]
        values: Iterator = iter(())
        name = file.stem
        if todo:
            method = run.get("method")
            requests = self.requests(todo, self.run_length(method))
            if process == 0:
                self.announce(name, run, options)
            # Weights that do not fit are refused before a journal is begun.
            model = self.serving.endpoint if self.serving else self.extended(method, options)
            values = self.measure(model, requests)
        already = len(keys) - len(todo)
        with (
            journal.Journal(path.with_name(f"{path.name}.{process}.jsonl")) as lines,
            tqdm(total=len(keys), initial=already, desc=name, disable=process > 0) as bar,
        ):
            started = time.perf_counter()
            try:
                for key, value in values:
                    now = time.perf_counter()
                    lines.add(key, {"value": value, "seconds": round(now - started, 3)})
                    started = now
                    bar.update(1)
            except NonFiniteError as error:
                raise NonFiniteError(f"{name}: {error}") from error
        processes.barrier()
        if process:
            return None
        done = journal.read_all(path)
        return {key: done[key] for key in keys}

    def announce(self, name: str, run: dict, options: dict) -> None:
        """Say what is about to be measured."""
        count = len(self.prepared.samples)
        samples = "1 sample" if count == 1 else f"{count:,} samples"
        stated = "".join(f"; {key} {value}" for key, value in self.prepared.settings.items())
        if "engine" in run:
            stated += f"; engine {run['engine']}"
        method = run.get("method")
        by = f" by {command_line.in_words(method, options)}" if method else ""
        print(
            f"{self.name} of {self.base.folder}{by}, {name}: {samples}"
            f"{textwrap.shorten(stated, 160)}",
            file=sys.stderr,
        )

    def journal_path(self, file: Path, identity: str) -> Path:
        """The path of a run's journals without the end of their names: beside the results, outside
        version control.

        The name includes hashes of the code that measures and of where the record goes. What other
        code measured is not used, and with --replace nothing is. Every process calls this.
        """
        folder = self.results.resolve().parent / "runs" / self.base.folder / self.name
        place = records.identity(results=str(self.results.resolve()))
        path = folder / f"{identity}.{records.code_hash()}.{place}"
        if processes.rank()[0] == 0 and self.arguments.replace:
            for old in folder.glob(f"{path.name}.*.jsonl"):
                with files.lock(old):
                    old.unlink()
        processes.barrier()
        return path


def content_of(samples: dict) -> dict:
    """What identifies samples in records: their number and a hash of their content."""
    return {"samples": len(samples), "sha256": records.identity(samples=samples)}


def suite_options(
    parser: argparse.ArgumentParser, stated: dict, experiment: str, name: str, model: BaseModel
) -> dict:
    """The options with which a model's suite calls an experiment, but for those that the command
    line states or decides.

    Args:
        parser: the experiment's.
        stated: the options that the command line states.
        name: the model's.
        model: with the one scaling factor of the command line.
    """
    decided = {"factor", "method", "fitting", *stated}
    if "lengths" in stated:
        decided |= OF_LENGTHS
    if stated.keys() & TEXTS:
        decided |= TEXTS
    lists = {action.dest for action in parser._actions if action.nargs == "+"}
    options = {}
    (factor,) = model.factors
    for option, value in suites.defaults(name, model, experiment, factor).items():
        if option in lists:
            value = list(value) if isinstance(value, tuple) else [value]
        if option not in decided:
            options[option] = value
    return options
