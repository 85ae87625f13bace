"""What every evaluation shares: choosing models and methods, loading once, a journal, several processes, one record.

A checkpoint that experiments.finetune made is evaluated as it is; its record goes to its scale, under its method.

An experiment states its run as a dictionary, names its parts (samples, books, windows) by keys, and gives a function
that scores some of them. :func:`measure` skips the parts in the journal, divides the rest among the processes of
`accelerate launch` or `torchrun`, and returns all parts once they are done.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from tqdm import tqdm

from core import files, rope
from core.errors import InputError
from core.extend import extend
from core.rope import scale
from eval.engine import InProcess
from experiments import base_models
from experiments.kit import command_line, given_model, journal, load_model, processes, records
from experiments.kit.processes import rank

Evaluate = Callable[[list[str]], Iterator[tuple[str, object]]]


ALL = "all that need no training; with --model, the checkpoint as it is"


def parser(module_doc: str, experiment: str, methods: str = ALL) -> argparse.ArgumentParser:
    """A parser with the options that choose model, methods and records.

    Args:
        methods: the words for the methods that are measured where none are given.
    """
    made = command_line.parser(module_doc, prog=f"python -m experiments.{experiment}")
    made.add_argument(
        "--scale",
        default="smollm2",
        help=f"evaluate the model of this scale: one of {', '.join(base_models.SCALES)} (default smollm2)",
    )
    made.add_argument(
        "--model",
        metavar="PATH_OR_NAME",
        help="evaluate this checkpoint instead: a directory (such as experiments.finetune writes) or a name on the hub",
    )
    command_line.add_dtype_argument(made)
    command_line.add_method_arguments(made, several=methods)
    command_line.add_records_arguments(made)
    return made


def load(name: str, dtype: str) -> load_model.Loaded:
    """Load a model to evaluate, and note its attention implementation for the records."""
    loaded = load_model.load(name, dtype)
    records.note(attention=loaded.model.config._attn_implementation)
    return loaded


class Evaluation:
    """The model and the methods that a command line asks for."""

    def __init__(self, arguments: argparse.Namespace, experiment: str) -> None:
        self.arguments, self.experiment = arguments, experiment
        if arguments.model is not None:
            given_model.scale_name(arguments.model)  # refuses an empty name, which would mean the scale's own model
        self.name = arguments.model or arguments.scale
        self.training = None if arguments.method else _training(arguments.model)
        self.factor = arguments.factor
        if self.training:  # fine-tuned by experiments.finetune: a record of that method at that scale
            self.scale, self.factor = self.training["scale"], self.training["factor"]
        elif arguments.model:  # records of a user's own model go under its name
            self.scale = given_model.scale_name(arguments.model)
        else:
            base_models.get(arguments.scale)
            self.scale = arguments.scale
        load_model.check_access(self.name)
        arguments.dtype = load_model.chosen_dtype(arguments.dtype, self.name, self.scale)
        processes.place()  # before any experiment can load a model

    @functools.cached_property
    def loaded(self) -> load_model.Loaded:
        """The model, loaded when first needed, once."""
        return load(self.name, self.arguments.dtype)

    def comparison(self) -> list[tuple[str | None, dict]]:
        """The (method, options) to run; a method of None means the checkpoint as it is."""
        factor = self.factor
        if self.training:
            return [(self.training["method"], self.training["options"])]
        if self.arguments.method:
            chosen = command_line.chosen_methods(self.arguments)
        elif self.arguments.model:
            return [(None, {})]
        else:
            chosen = base_models.get(self.arguments.scale).comparison(factor)
        for method, options in chosen:  # refuse a wrong method or option before the long work
            geometry = load_model.geometry(self.name)
            scale(geometry, method, factor, **options)
        return chosen

    def refuse_training_text(self, hashes: set[str]) -> None:
        """Raise InputError if the checkpoint, or a method's factors, learned from a text that is to be scored.

        Args:
            hashes: SHA-256 of the texts to score.
        """
        learned = {self.name: self.training} if self.training else {}
        for method, options in self.comparison():
            for path in rope.named_files(method, options).values() if method else ():
                if path.suffix == ".json":
                    found = files.read_json(path, "give a file that is whole", (dict, list))
                    learned[str(path)] = found if isinstance(found, dict) else {}
        for name, what in learned.items():
            for book in what.get("data_facts", {}).get("books", ()):
                if book["sha256"] in hashes:
                    raise InputError(f"{name} was trained on {book['title']!r}; score another text.")

    def extended(self, run: dict) -> load_model.Loaded:
        """The loaded model with the run's method applied."""
        if run["method"] is not None and not self.training:
            extend(self.loaded.model, run["method"], run["factor"], **self.options(run))
        return self.loaded

    def engine(self, run: dict) -> InProcess:
        """What continues prompts with the run's model."""
        loaded = self.extended(run)
        return InProcess(loaded.model, loaded.tokenizer)

    def options(self, run: dict) -> dict:
        """The options of a run as given on the command line, with full paths."""
        wanted = run["method"], run["options"]
        return next(given for method, given in self.comparison() if (method, stated(method, given)) == wanted)

    def runs(self, data: dict, suffix: str = "", **settings) -> Iterator[tuple[dict, Path]]:
        """The runs that are not yet recorded, each with its record's path.

        Args:
            data: what identifies the samples.
            suffix: appended to the record's name, so that several settings of one method can be kept.
            settings: every other option that changes a score.
        """
        for method, options in self.comparison():
            run = {
                "scale": self.scale,
                "experiment": self.experiment,
                "method": method,
                "factor": self.factor if method else 1.0,
                "options": stated(method, options) if method else options,
                "model": load_model.provenance(self.name) | named(method, options),
                "dtype": self.arguments.dtype,
                **settings,
                "data": data,
            }
            if self.training:
                run["training"] = {key: self.training[key] for key in ("identity", "seed", "steps", "length")}
            run["identity"] = records.identity(**run)
            name = records.run_of(run) if method else "model"
            file = records.path(self.arguments.results, self.scale, self.experiment, name + suffix)
            first, facts = rank()[0] == 0, self.facts()
            if first:
                records.check_scale(self.arguments.results, self.scale, facts)
            if not records.is_done(file, run, self.arguments.replace):
                # The fields that must agree between two records in one table; "base" is one of them.
                agree = {"comparable": ["base", "dtype", *settings, "data"], "base": self.base()}
                yield run | agree, file
            elif first:
                print(f"done already: {file}")
            if first and file.exists():  # a run that failed leaves no record
                records.state_scale(self.arguments.results, self.scale, facts)

    def base(self) -> dict:
        """The SHA-256 of each file of the pre-trained weights."""
        return self.training["model"]["sha256"] if self.training else load_model.provenance(self.name)["sha256"]

    def facts(self) -> dict:
        """The contents of scale.json: the scale's own facts, or what the model's configuration states."""
        is_scale = self.scale in base_models.SCALES and (self.training or not self.arguments.model)
        own = base_models.get(self.scale).facts() if is_scale else load_model.facts(self.name, self.scale, self.factor)
        return own | {"sha256": self.base()}


def stated(method: str, options: dict) -> dict:
    """Options as a record states them: a path by its last part only, because it may move."""
    return options | {name: path.name for name, path in rope.named_files(method, options).items()}


def named(method: str | None, options: dict) -> dict:
    """What identifies the weights and files that a method's options name, if any."""
    found = rope.named_files(method, options) if method else {}
    return {name: _content(path) for name, path in found.items()}


def _content(path: Path) -> str | dict:
    """The hash of a file, or of each weight file in a directory; a record's hash leaves out environment and seconds."""
    if not path.is_file():
        return load_model.provenance(str(path))["sha256"]
    if path.suffix != ".json":
        return files.sha256(path)
    stated = files.read_json(path, "give a file that is whole", (dict, list))
    if isinstance(stated, dict):
        stated = {key: value for key, value in stated.items() if key not in ("environment", "seconds")}
    return records.identity(content=stated)


def measure(
    run: dict,
    file: Path,
    keys: list[str],
    evaluate: Evaluate,
    journal_of: str | None = None,
    together: Callable[[str], Hashable] = lambda key: key,
) -> dict | None:
    """Score every key, resuming where an earlier call stopped.

    Args:
        run, file: from :meth:`Evaluation.runs`; the journal lies beside the results, named by the run's identity.
        keys: the names of the parts, all different.
        evaluate: scores some keys and yields each one when it is done.
        journal_of: another identity for the journal, if runs share parts.
        together: keys for which this is equal go to the same process, which can score them at the cost of one.

    Returns:
        the parts by key; None in every process but the first.
    """
    if len(set(keys)) != len(keys):
        raise InputError("two samples have the same name; give every sample its own.")
    process, count = rank()
    processes.place()
    place = journal_place(file, run["experiment"], journal_of or run["identity"])

    # Every process reads all journals before any process writes more.
    done = _read(place)
    processes.wait()
    # Keys that belong together are scored again together, so that a kill does not change a pass that they share.
    begun = {together(key) for key in keys if key not in done}
    todo = divided([key for key in keys if together(key) in begun], together, count)[process]
    with (
        journal.Journal(place.with_name(f"{place.name}.{process}.jsonl")) as own,
        tqdm(total=len(keys), initial=len(keys) - len(todo), desc=file.stem, disable=process > 0) as bar,
    ):
        started = time.perf_counter()
        for key, value in evaluate(todo) if todo else ():
            now = time.perf_counter()
            own.add(key, {"value": value, "seconds": round(now - started, 3)})
            started = now
            bar.update(1)
    processes.wait()
    if process:
        return None
    done = _read(place)
    return {key: done[key] for key in keys}


def journal_place(record: Path, experiment: str, identity: str) -> Path:
    """The path of a run's journals without the end of their names: beside the results, outside version control.

    The name includes a hash of the code that scores. Parts that other code scored are not used, and a note says so.
    """
    scale = record.parents[1]
    folder = scale.parent.resolve().parent / "runs" / scale.name / experiment
    place = folder / f"{identity}.{records.scored_by(experiment)}"
    if rank()[0] == 0 and any(folder.glob(f"{identity}.*.jsonl")) and not any(folder.glob(f"{place.name}.*")):
        print(f"note: other code scored the unfinished parts of {record.stem}; they are scored again.", file=sys.stderr)
    return place


def divided(keys: list[str], together: Callable[[str], Hashable], count: int) -> list[list[str]]:
    """The keys for each of `count` processes, in order; keys with the same `together` go to the same process."""
    turn = {unit: number % count for number, unit in enumerate(dict.fromkeys(map(together, keys)))}
    return [[key for key in keys if turn[together(key)] == process] for process in range(count)]


def finish(run: dict, file: Path, parts: dict, scores: dict) -> Path:
    """Write the record of a measured run."""
    seconds = sum(part["seconds"] for part in parts.values())
    return records.write(file, run | scores | {"seconds": round(seconds, 1)})


def values(parts: dict) -> dict:
    """The parts' values by key."""
    return {key: part["value"] for key, part in parts.items()}


def _training(model: str | None) -> dict | None:
    """The training.json of a checkpoint that experiments.finetune made; None for any other.

    Raises:
        InputError: the training.json is not what experiments.finetune writes.
    """
    file = Path(model or "") / "training.json"
    if not (model and file.is_file()):
        return None
    found = files.read_json(file, "fine-tune again, or remove it to evaluate the checkpoint under its own name")
    for key, kind in _TRAINING.items():
        value = found.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{file} has {key} {value!r}, which experiments.finetune never writes; fine-tune again.")
    files.component(found["scale"])
    rope.get(found["method"])
    return found


# The fields of training.json that an evaluation reads.
_TRAINING = {"scale": str, "method": str, "factor": (int, float), "options": dict, "seed": int, "steps": int,
             "length": int, "identity": str, "model": dict}  # fmt: skip


def _read(place: Path) -> dict:
    """The union of all processes' journals."""
    parts: dict = {}
    for file in sorted(place.parent.glob(f"{place.name}.*.jsonl")):
        parts |= journal.read(file)
    return parts
