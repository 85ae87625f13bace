"""The life of an experiment: command line, runs, samples, journal, processes, and one record a run.

    python -m experiments.NAME --model NAME|DIRECTORY|HUB_NAME --method pi yarn --factor 2

An experiment is a class that states its settings, makes its samples before any weights are loaded,
measures some of them, and sums up all. The rest is here: a run that is recorded is skipped; a
killed one goes on from its journal; the processes of `accelerate launch` or `torchrun` divide the
samples; the record is written once, when all are measured.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tqdm import tqdm
from transformers import PreTrainedModel

from core import files, rope
from core.errors import InputError, NonFiniteError
from core.extend import extend
from eval import special_tokens
from experiments import base_models, suites
from experiments.base_models.model import Model
from experiments.kit import command_line, journal, processes, records
from experiments.kit.base_model import BaseModel, computed, options_for_record

ALL = "for a base model, all that need no training; else the checkpoint as it is"
TEXTS = "packaged", "parts", "plays", "texts"  # whoever chooses by one of them needs no other
_OF_TRAINING = "identity", "seed", "rate", "steps", "length"
OF_LENGTHS = (
    "stride",
    "tokens",
)  # chosen for a suite's --lengths: other lengths leave them to the script


class Experiment:
    """One experiment. A subclass has the script's text as its docstring, and states or overrides
    the following.

    Attributes:
        name: of its script and of its folder of records.
        unit: what a score is, in words; a run ends with it.
        methods: the words for the methods that are measured if none are given; None if it compares
            no methods.
        evaluates: False if it makes a model instead, and loads the weights itself.
        serving: the server that computes instead of this process, if there is one.
    """

    name: ClassVar[str]
    unit: ClassVar[str] = ""
    methods: ClassVar[str | None] = ALL
    evaluates: ClassVar[bool] = True
    serving: Any = None

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        """Its own options, besides those of the model, the methods and the records."""

    def settings(self) -> dict:
        """Everything else that changes a score, as records state it; bad input is refused here,
        before any work."""
        return {}

    def samples(self) -> dict:
        """The samples by key; a model's tokenizer may be read, its weights may not."""
        raise NotImplementedError

    def data(self) -> dict:
        """What identifies the samples in records: by default their number and a hash of their
        content."""
        return {"samples": len(self.content), "sha256": records.identity(samples=self.content)}

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, object]]:
        """The value of each of these samples, as it is known; :meth:`extended` gives the model."""
        raise NotImplementedError

    def summary(self, run: dict, values: dict) -> dict:
        """What the record says of the values of all samples: "scores", and whatever else is
        kept."""
        raise NotImplementedError

    def check(self, run: dict, keys: list[str]) -> None:
        """Refuse samples that the model cannot read; no weights are loaded yet."""

    def suffix(self) -> str:
        """The end of the record's name, where records of several settings of one method are
        kept."""
        return ""

    # What every experiment has.

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.base = BaseModel(arguments.model, as_it_is=not getattr(arguments, "method", None))
        extension = self.base.extension if self.methods is not None else self.base.training
        self.factor = (
            extension["factor"] if extension else arguments.factor if self.base.extends else 1
        )
        self.results = arguments.results or self.base.results
        if getattr(arguments, "lengths", None):
            arguments.lengths = sorted(arguments.lengths)
        if self.evaluates:
            self.base.check_access()
            arguments.dtype = self.base.chosen_dtype(arguments.dtype)
            processes.join()  # before a model can be loaded

    @classmethod
    def main(cls) -> None:
        """The script: reads the command line and measures what is not yet recorded."""
        cls(cls.parse()).run()

    @classmethod
    def parse(cls) -> argparse.Namespace:
        """The command line; what it leaves open is as the model's suite has it."""
        parser = command_line.parser(
            inspect.getdoc(cls) or "", prog=f"python -m {records.program(cls.name)}"
        )
        base_models.add_argument(parser)
        if cls.methods is not None:
            command_line.add_method_arguments(parser, several=cls.methods)
        else:
            command_line.add_factor_argument(parser)
        if cls.evaluates:
            command_line.add_dtype_argument(parser)
        cls.add_options(parser)
        command_line.add_records_arguments(parser)
        arguments = suite_arguments(parser, cls.name)
        if cls.methods is not None:
            command_line.check_method(arguments)
        return arguments

    def run(self) -> None:
        """Measure every run that is not yet recorded."""
        settings = self.settings()
        for run, file in self.runs(self.data(), self.suffix(), **settings):
            measured = self.measured(run, file)
            if measured is not None:
                summary = self.summary(
                    run, {key: entry["value"] for key, entry in measured.items()}
                )
                by = {"fingerprints": [self.serving.at(run).fingerprint]} if self.serving else {}
                self.finish(
                    run | summary | by, file, sum(entry["seconds"] for entry in measured.values())
                )

    def finish(self, record: dict, file: Path, seconds: float) -> None:
        """Write a record; print its scores, and then where it is."""
        records.state_model(self.results, self.base.folder, self.facts())
        kernel = (
            {"attention": self.loaded.config._attn_implementation} if "loaded" in vars(self) else {}
        )
        written = records.write(file, record | {"seconds": round(seconds, 1)}, **kernel)
        lines = records.score_lines(record.get("scores") or record.get("ranges", []))
        print(*([f"{self.unit}:"] if lines and self.unit else []), *lines, written, sep="\n")

    @property
    def context_length(self) -> int:
        """L, in tokens."""
        return self.base.context_length

    @property
    def extended_length(self) -> int:
        """L' = s·L, in tokens."""
        return round(self.context_length * self.factor)

    def run_length(self, run: dict) -> int:
        """The context length of the model with the run's method, in tokens."""
        extends = run["method"] is not None and not self.base.extension
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
    def content(self) -> dict:
        """The samples, made once."""
        return self.samples()

    @functools.cached_property
    def bos(self) -> list[int]:
        """The ids before a text that is scored: by --bos if the experiment has that option, else by
        the tokenizer."""
        return special_tokens.beginning(self.base.tokenizer, getattr(self.arguments, "bos", None))

    @functools.cached_property
    def loaded(self) -> PreTrainedModel:
        """The model, loaded when first needed, once."""
        return self.base.load(self.arguments.dtype)

    def extended(self, run: dict) -> PreTrainedModel:
        """The loaded model with the run's method applied."""
        if run["method"] is not None and not self.base.extension:
            extend(self.loaded, run["method"], run["factor"], **self.options(run))
        return self.loaded

    def options(self, run: dict) -> dict:
        """The options of the run's method as the command line has them, with whole paths."""
        return next(
            options
            for method, options in self.comparison()
            if (method, options_for_record(method, options)) == (run["method"], run["options"])
        )

    def comparison(self) -> list[tuple[str | None, dict]]:
        """The (method, options) to run; a method of None means the checkpoint as it is."""
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

    def refuse_training_text(self, hashes: set[str]) -> None:
        """Raise InputError if the checkpoint, or a method's factors, learned from a text that is to
        be scored.

        Args:
            hashes: SHA-256 of the texts to score.
        """
        learned = {self.base.name: self.base.training} if self.base.training else {}
        for method, options in () if self.base.extension else self.comparison():
            for path in rope.named_files(method, options).values() if method else ():
                if path.suffix == ".json":
                    content = files.read_json(path, "give a file that is whole", (dict, list))
                    learned[str(path)] = content if isinstance(content, dict) else {}
        for name, facts in learned.items():
            for book in facts.get("data_facts", {}).get("books", ()):
                if book["sha256"] in hashes:
                    raise InputError(
                        f"{name} was trained on {book['title']!r}; score another text."
                    )

    def facts(self) -> dict:
        """The contents of model.json."""
        return self.base.facts(self.factor) | {"sha256": self.base.before_training["sha256"]}

    def runs(self, data: dict, suffix: str = "", **settings) -> Iterator[tuple[dict, Path]]:
        """The runs that are not yet recorded, each with its record's path.

        Args:
            data: what identifies the samples.
            suffix: appended to the record's name, so that several settings of one method can be
                kept.
            settings: every other option that changes a score.
        """
        before = self.base.before_training
        for method, options in self.comparison() if self.methods is not None else [(None, {})]:
            run = {
                "scale": self.base.folder,
                "experiment": self.name,
                "factor": self.factor,
                **settings,
            }
            run |= {"model": self.base.provenance, "dtype": self.arguments.dtype, "data": data}
            if method and not self.base.extension:
                run |= computed(self.base.geometry, method, self.factor, options)
            if training := self.base.training:
                run["training"] = {key: training[key] for key in _OF_TRAINING if key in training}
                run["training"]["settings"] = records.identity(
                    **records.asked(training) | {"seed": None}
                )
                file = records.path(
                    self.results, self.base.folder, "finetune", self.base.provenance["source"]
                )
                known = file.is_file() and records.read(file).get("identity")
                if self.results.resolve() == records.RESULTS and known != training["identity"]:
                    raise InputError(
                        f"{file} is not of this fine-tune; give another --results for its "
                        f"evaluations."
                    )
            if self.methods is None:
                name = f"s={self.factor:g}"
            elif method is None:
                run |= {"method": None, "factor": 1.0, "options": {}}
                name = "as-it-is"
            else:
                run |= {"method": method, "options": options_for_record(method, options)}
                name = records.run_of(run)
            engine, apart = self.serving.facts(run) if self.serving else ({}, [])
            if file := self.to_measure(run := run | engine, name + suffix):
                run["base"] = before["sha256"] | {
                    key: before[key] for key in ("tokenizer", "config") if key in before
                }
                # The fields that must agree between two records in one table.
                run["comparable"] = ["base", "dtype", *settings, "data", *apart]
                yield run, file

    def to_measure(self, run: dict, name: str) -> Path | None:
        """The file of a run's record, and the run's identity in it; None, and a line that says so,
        if it is done.

        Raises:
            InputError: a record of another run, or of another model, is in its place.
        """
        run["identity"] = records.identity(**run)
        file = records.path(self.results, self.base.folder, self.name, name)
        first = processes.rank()[0] == 0
        if first:
            records.check_model(self.results, self.base.folder, self.facts())
        if not records.is_done(file, run, self.arguments.replace):
            return file
        if first:
            print(f"done already: {file}")
        return None

    def measured(self, run: dict, file: Path) -> dict | None:
        """Measure the samples, but for those that are in the journal of an earlier call.

        Args:
            file: the record's; progress and errors are shown by its name.

        Returns:
            {"value", "seconds"} by key; None in every process but the first.
        """
        keys = list(self.content)
        path = self.journal_path(
            file, self.serving.journal_identity(run) if self.serving else run["identity"]
        )
        process, count = processes.rank()

        # Every process reads all journals before any process writes more.
        done = journal.read_all(path)
        processes.barrier()
        todo = [key for key in keys if key not in done][process::count]
        if todo:
            self.check(run, todo)
            if process == 0:
                names = (
                    name
                    for name in run["comparable"]
                    if name not in ("base", "dtype", "data", "evaluator")
                )
                setting = textwrap.shorten("".join(f"; {name} {run[name]}" for name in names), 160)
                samples = f"{len(keys):,} sample{'s' * (len(keys) > 1)}"
                print(
                    f"{self.name} of {self.base.folder}, {file.stem}: {samples}{setting}",
                    file=sys.stderr,
                )
            # Weights that do not fit are refused before a journal is begun.
            self.serving or self.loaded  # noqa: B018
        total, start = len(keys), len(keys) - len(todo)
        with (
            journal.Journal(path.with_name(f"{path.name}.{process}.jsonl")) as lines,
            tqdm(total=total, initial=start, desc=file.stem, disable=process > 0) as bar,
        ):
            started = time.perf_counter()
            try:
                for key, value in self.measure(run, todo) if todo else ():
                    now = time.perf_counter()
                    lines.add(key, {"value": value, "seconds": round(now - started, 3)})
                    started = now
                    bar.update(1)
            except NonFiniteError as error:
                raise NonFiniteError(f"{file.stem}: {error}") from error
        processes.barrier()
        if process:
            return None
        done = journal.read_all(path)
        return {key: done[key] for key in keys}

    def journal_path(self, file: Path, identity: str) -> Path:
        """The path of a run's journals without the end of their names: beside the results, outside
        version control.

        The name includes hashes of the code that measures and of where the record goes. What other
        code measured is not used, and a note says so. Nothing is with --replace. Every process
        calls this.
        """
        folder = self.results.resolve().parent / "runs" / self.base.folder / self.name
        place = records.identity(results=str(self.results.resolve()))
        path = folder / f"{identity}.{records.code_hash(records.program(self.name))}.{place}"
        if processes.rank()[0] == 0:
            for old in folder.glob(f"{path.name}.*.jsonl") if self.arguments.replace else ():
                with files.lock(old):
                    old.unlink()
            if any(folder.glob(f"{identity}.*.{place}.*.jsonl")) and not any(
                folder.glob(f"{path.name}.*")
            ):
                print(
                    f"note: other code scored parts of {file.stem}; they are scored again.",
                    file=sys.stderr,
                )
        processes.barrier()
        return path


def suite_arguments(parser: argparse.ArgumentParser, experiment: str) -> argparse.Namespace:
    """The command line of an experiment; what it leaves open is as in the suite of its model, if it
    can be extended."""
    words = [word for word in sys.argv[1:] if word not in ("-h", "--help")]
    arguments = parser.parse_known_args(words)[0]
    base = BaseModel(arguments.model, as_it_is=not getattr(arguments, "method", None))
    if base.origin or base.extends:
        factor = base.extension["factor"] if base.extension else arguments.factor or 2
        model = replace(
            base.origin or Model(base.folder, base.name, base.geometry), factors=(factor,)
        )
        own = {
            *("factor", "method", "fitting"),
            *(OF_LENGTHS if getattr(arguments, "lengths", None) else ()),
        }
        own |= {*TEXTS} if any(getattr(arguments, name, None) for name in TEXTS) else set()
        lists = {action.dest for action in parser._actions if action.nargs == "+"}
        for name, value in suites.defaults(base.folder, model, experiment, factor).items():
            if name not in own:
                several = [*value] if isinstance(value, tuple) else [value]
                parser.set_defaults(**{name: several if name in lists else value})
    return parser.parse_args()
