"""What every evaluation shares: which model under which method, one load for all, a journal, shards, one record.

A checkpoint that experiments.finetune made is evaluated as it is, and its record goes to its scale, under its method.

An experiment states its run as a dictionary, names its parts (samples, books, windows) by keys, and gives a function
that scores some of them; :func:`measure` skips what is journalled, divides the rest among the processes of
`accelerate launch` or `torchrun`, and hands all parts back once they are done.
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
from experiments.lab import cli, journal, models, placing, records, scales, source
from experiments.lab.placing import rank

Evaluate = Callable[[list[str]], Iterator[tuple[str, object]]]


def parser(module_doc: str, experiment: str) -> argparse.ArgumentParser:
    """A parser with the options that choose model, methods and records."""
    made = cli.parser(module_doc, prog=f"python -m experiments.{experiment}")
    made.add_argument(
        "--scale",
        default="smollm2",
        help=f"whose model to evaluate: one of {', '.join(scales.SCALES)} (default smollm2)",
    )
    made.add_argument(
        "--model",
        metavar="PATH_OR_NAME",
        help="evaluate this checkpoint instead: a directory, such as experiments.finetune writes, or a name on the hub",
    )
    cli.add_dtype_argument(made)
    cli.add_method_arguments(made, several=True)
    cli.add_records_arguments(made)
    return made


def load(name: str, dtype: str) -> models.Loaded:
    """A model to evaluate, of whose attention the records say which it is."""
    loaded = models.load(name, dtype)
    records.note(attention=loaded.model.config._attn_implementation)
    return loaded


class Evaluation:
    """The model and the methods that a command line asks for."""

    def __init__(self, arguments: argparse.Namespace, experiment: str) -> None:
        self.arguments, self.experiment = arguments, experiment
        if arguments.model is not None:
            source.scale_name(arguments.model)  # refuses an empty name, which would stand for the scale's own model
        self.name = arguments.model or arguments.scale
        self.training = None if arguments.method else _training(arguments.model)
        self.factor = arguments.factor
        if self.training:  # fine-tuned by experiments.finetune: a record of that method at that scale
            self.scale, self.factor = self.training["scale"], self.training["factor"]
        elif arguments.model:  # records of a user's own model go under its name
            self.scale = source.scale_name(arguments.model)
        else:
            scales.get(arguments.scale)
            self.scale = arguments.scale
        models.check_access(self.name)
        arguments.dtype = models.chosen_dtype(arguments.dtype, self.name, self.scale)
        placing.place()  # before any experiment can load a model

    @functools.cached_property
    def loaded(self) -> models.Loaded:
        """The model, loaded when first needed, once."""
        return load(self.name, self.arguments.dtype)

    def comparison(self) -> list[tuple[str | None, dict]]:
        """(method, options) to run; a method of None takes the checkpoint as it is."""
        factor = self.factor
        if self.training:
            return [(self.training["method"], self.training["options"])]
        if self.arguments.method:
            chosen = cli.chosen_methods(self.arguments)
        elif self.arguments.model:
            return [(None, {})]
        else:
            chosen = scales.get(self.arguments.scale).comparison(factor)
        for method, options in chosen:  # refuse a bad method or option before the long work
            geometry = models.geometry(self.name)
            scale(geometry, method, factor, **options)
        return chosen

    def refuse_training_text(self, hashes: set[str]) -> None:
        """InputError if one of the texts to score is one that the checkpoint, or a method's factors, learned from."""
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

    def extended(self, run: dict) -> models.Loaded:
        """The loaded model with the run's method applied."""
        if run["method"] is not None and not self.training:
            extend(self.loaded.model, run["method"], run["factor"], **self.options(run))
        return self.loaded

    def options(self, run: dict) -> dict:
        """Those of a run as they were given, with whole paths."""
        wanted = run["method"], run["options"]
        return next(given for method, given in self.comparison() if (method, stated(method, given)) == wanted)

    def runs(self, data: dict, suffix: str = "", **settings) -> Iterator[tuple[dict, Path]]:
        """The runs that are still to do, each with its record's path.

        Args:
            data: what identifies the samples; settings: every other option that changes a score.
            suffix: appended to the record's name where several settings of one method are kept.
        """
        for method, options in self.comparison():
            run = {
                "scale": self.scale,
                "experiment": self.experiment,
                "method": method,
                "factor": self.factor if method else 1.0,
                "options": stated(method, options) if method else options,
                "model": models.provenance(self.name) | named(method, options),
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
                # What must agree between two records of one table, and how each of them has it.
                agree = {"comparable": ["base", "dtype", *settings, "data"], "base": self.base()}
                yield run | agree, file
            elif first:
                print(f"done already: {file}")
            if first and file.exists():  # what failed leaves nothing
                records.state_scale(self.arguments.results, self.scale, facts)

    def base(self) -> dict:
        """The SHA-256 of the pre-trained weights' files."""
        return self.training["model"]["sha256"] if self.training else models.provenance(self.name)["sha256"]

    def facts(self) -> dict:
        """What scale.json says of the model: the scale's own facts, or what its configuration states."""
        is_scale = self.scale in scales.SCALES and (self.training or not self.arguments.model)
        own = scales.get(self.scale).facts() if is_scale else models.facts(self.name, self.scale, self.factor)
        return own | {"sha256": self.base()}


def stated(method: str, options: dict) -> dict:
    """Options as a record says them: of a path its last part, as it may lie elsewhere tomorrow."""
    return options | {name: path.name for name, path in rope.named_files(method, options).items()}


def named(method: str | None, options: dict) -> dict:
    """What identifies the weights and files that a method's options name, if any does."""
    found = rope.named_files(method, options) if method else {}
    return {name: _content(path) for name, path in found.items()}


def _content(path: Path) -> str | dict:
    """A hash of a file, of a directory's weights one each; of a record, but for when and where it was made."""
    if not path.is_file():
        return models.provenance(str(path))["sha256"]
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
    """Score every key, resuming where an earlier call stopped; the parts by key, or None in a secondary process.

    Args:
        run, file: as from :meth:`Evaluation.runs`; the journal lies beside the results, named by the run's identity.
        keys: the parts, each of them unique.
        evaluate: scores some keys, one by one as they are done.
        journal_of: another identity for the journal, where runs share parts.
        together: keys of one value go to one process, which can score them at the cost of one.
    """
    if len(set(keys)) != len(keys):
        raise InputError("two samples have the same name; give every sample its own.")
    process, count = rank()
    placing.place()
    place = journal_place(file, run["experiment"], journal_of or run["identity"])

    # Every process reads what all wrote before any of them writes more.
    done = _read(place)
    placing.wait()
    # What was begun together is done together, so that a kill changes no window that two parts share.
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
    placing.wait()
    if process:
        return None
    done = _read(place)
    return {key: done[key] for key in keys}


def journal_place(record: Path, experiment: str, identity: str) -> Path:
    """Where the journals of a run lie, but for the end of their names: beside the results, outside version control.

    They are named by the code that scores as well; of parts that other code scored none is taken, and that is said.
    """
    scale = record.parents[1]
    folder = scale.parent.resolve().parent / "runs" / scale.name / experiment
    place = folder / f"{identity}.{records.scored_by(experiment)}"
    if rank()[0] == 0 and any(folder.glob(f"{identity}.*.jsonl")) and not any(folder.glob(f"{place.name}.*")):
        print(f"note: what was begun of {record.stem} other code scored; it begins anew.", file=sys.stderr)
    return place


def divided(keys: list[str], together: Callable[[str], Hashable], count: int) -> list[list[str]]:
    """The keys of each of `count` processes, in their order; those of one value of `together` in one of them."""
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
    """How experiments.finetune made a checkpoint, if it did.

    Raises:
        InputError: its training.json is not what experiments.finetune writes.
    """
    file = Path(model or "") / "training.json"
    if not (model and file.is_file()):
        return None
    found = files.read_json(file, "fine-tune again, or remove it to evaluate the checkpoint under its own name")
    for key, kind in _TRAINING.items():
        value = found.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{file} states {key} as {value!r}, which no fine-tune here does; fine-tune again.")
    files.component(found["scale"])
    rope.get(found["method"])
    return found


# What an evaluation reads of training.json.
_TRAINING = {"scale": str, "method": str, "factor": (int, float), "options": dict, "seed": int, "steps": int,
             "length": int, "identity": str, "model": dict}  # fmt: skip


def _read(place: Path) -> dict:
    """The union of all processes' journals."""
    parts: dict = {}
    for file in sorted(place.parent.glob(f"{place.name}.*.jsonl")):
        parts |= journal.read(file)
    return parts
