"""What every evaluation shares: which model under which method, one load for all, a journal, shards, one record.

A checkpoint that experiments.finetune made is evaluated as it is, and its record goes to its scale, under its method.

An experiment states its run as a dictionary, names its parts (samples, books, windows) by keys, and gives a function
that scores some of them; :func:`measure` skips what is journalled, divides the rest among the processes of
`accelerate launch` or `torchrun`, and hands all parts back once they are done.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from accelerate import PartialState
from accelerate.utils.memory import should_reduce_batch_size
from tqdm import tqdm

from core.errors import InputError
from core.extend import extend
from core.rope import scale
from experiments.lab import cli, journal, models, records, scales, source

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
    made.add_argument(
        "--dtype", choices=("float32", "bfloat16", "float16"), default="float32", help="of the model (default float32)"
    )
    cli.add_method_arguments(made, several=True)
    cli.add_results_argument(made)
    return made


def rank() -> tuple[int, int]:
    """(this process, how many there are)."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


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

    @functools.cached_property
    def loaded(self) -> models.Loaded:
        """The model, loaded when first needed, once."""
        return models.load(self.name, self.arguments.dtype)

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
        """InputError if one of the texts to score is one that the checkpoint was fine-tuned on."""
        for book in self.training["data_facts"]["books"] if self.training else ():
            if book["sha256"] in hashes:
                raise InputError(f"{self.name} was trained on {book['title']!r}; score another text.")

    def extended(self, run: dict) -> models.Loaded:
        """The loaded model with the run's method applied."""
        if run["method"] is not None and not self.training:
            extend(self.loaded.model, run["method"], run["factor"], **run["options"])
        return self.loaded

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
                "options": options,
                "model": models.provenance(self.name) | weights(options),
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
            if not records.is_done(file, run["identity"]):
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


def weights(options: dict) -> dict:
    """What identifies the trained weights that an option names, if one does."""
    return {"weights": models.provenance(options["weights"])["sha256"]} if "weights" in options else {}


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
    results = file.parents[2].resolve()
    folder = results.parent / "runs" / run["scale"] / run["experiment"]
    identity = journal_of or run["identity"]
    process, count = rank()
    state = PartialState(cpu=models.device() == "cpu") if count > 1 else None

    # Every process reads what all wrote before any of them writes more.
    done = _read(folder, identity)
    if state:
        state.wait_for_everyone()
    own = journal.Journal(folder / f"{identity}.{process}.jsonl")
    todo = divided([key for key in keys if key not in done], together, count)[process]
    with tqdm(total=len(keys), initial=len(keys) - len(todo), desc=file.stem, disable=process > 0) as bar:
        started = time.perf_counter()
        try:
            for key, value in evaluate(todo) if todo else ():
                now = time.perf_counter()
                own.add(key, {"value": value, "seconds": round(now - started, 3)})
                started = now
                bar.update(1)
        except RuntimeError as error:
            if not should_reduce_batch_size(error):
                raise
            raise InputError(
                "out of memory with a single sample; take shorter samples, --dtype bfloat16, or a larger device."
            ) from error
    if state:
        state.wait_for_everyone()
    if process:
        return None
    done = _read(folder, identity)
    return {key: done[key] for key in keys}


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
    """How experiments.finetune made a checkpoint, if it did."""
    file = Path(model or "") / "training.json"
    return json.loads(file.read_text()) if model and file.is_file() else None


def _read(folder: Path, identity: str) -> dict:
    """The union of all processes' journals."""
    parts: dict = {}
    for file in sorted(folder.glob(f"{identity}.*.jsonl")):
        parts |= journal.read(file)
    return parts
