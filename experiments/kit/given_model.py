"""The model that --model names: a known base model, a checkpoint of experiments.finetune, or any other checkpoint.

A known name wins over a directory of that name: `tiny` is the base model, `./tiny` the directory.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from dataclasses import replace
from pathlib import Path

from core import files, rope
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments import base_models
from experiments.base_models.model import Model
from experiments.kit import command_line, records

DEFAULT = "tiny"  # of every script


def add_argument(to: argparse.ArgumentParser, required: bool = False) -> None:
    """Add --model."""
    kinds = f"a base model: {', '.join(base_models.MODELS)}; or a checkpoint's directory, or a name on the hub"
    if required:
        to.add_argument("--model", required=True, metavar="NAME", help=kinds)
    else:
        command_line.option(to, "--model", str, "NAME", kinds, DEFAULT)


TEXTS = "packaged", "parts", "texts"  # whoever chooses by one of them needs no other
OF_LENGTHS = "stride", "tokens"  # chosen for a suite's --lengths: other lengths leave them to the script


def parsed(parser: argparse.ArgumentParser, experiment: str) -> argparse.Namespace:
    """The command line of an experiment; what it leaves open is as in the suite of its model, if it can be extended."""
    from experiments import suites  # which imports this package

    given = parser.parse_known_args([word for word in sys.argv[1:] if word not in ("-h", "--help")])[0]
    model = GivenModel(given.model, as_it_is=not getattr(given, "method", None))
    if model.base or model.extends:
        factor = model.applied["factor"] if model.applied else given.factor or 2
        base = replace(model.base or Model(model.folder, model.name, model.geometry), factors=(factor,))
        options = suites.defaults(model.folder, base, experiment, factor)
        left = {*("factor", "method", "fitting"), *(OF_LENGTHS if getattr(given, "lengths", None) else ())}
        left |= {*TEXTS} if any(getattr(given, name, None) for name in TEXTS) else set()
        listed = {action.dest: action.nargs == "+" for action in parser._actions}
        parser.set_defaults(**{name: [*value] if isinstance(value, tuple) else [value] if listed[name] else value
                               for name, value in options.items() if name not in left})  # fmt: skip
    return parser.parse_args()


class GivenModel:
    """What --model names; nothing is loaded.

    Attributes:
        name: what it is loaded by.
        known: the base model of that name, or None.
        training: what training.json of a fine-tuned checkpoint says, or None.
        folder: the name of the folder of its records, and their key "scale".
    """

    def __init__(self, name: str, as_it_is: bool = False) -> None:
        """
        Args:
            as_it_is: no method is to be applied; a fine-tuned checkpoint then stands for the method of its training.
        """
        if not name.strip():
            raise InputError("--model is empty; give a base model, a directory, or a name on the Hugging Face hub.")
        self.name, self.as_it_is = name, as_it_is
        self.known: Model | None = base_models.MODELS.get(name)
        self.training = _training(Path(name)) if as_it_is and not self.known else None
        self.folder = self.training["scale"] if self.training else name if self.known else own_name(name)

    @functools.cached_property
    def applied(self) -> dict | None:
        """The method, options and factor s by which a checkpoint that is evaluated as it is was extended.

        A fine-tune has those of its training, an export those that its configuration states. An export of an older or
        a newer version states no method that is known here: its method is None. None for any other model.
        """
        if self.training or self.known or not self.as_it_is:
            return self.training
        from experiments.kit import load_model

        stated = load_model.extension(self.name)
        if not stated:
            return None
        method, options = stated.get("method"), stated.get("options")
        if method not in list(rope.METHODS) or not isinstance(options, dict):
            method, options = None, {}
        return {"method": method, "options": options, "factor": command_line.factor(str(stated["factor"]))}

    @property
    def base(self) -> Model | None:
        """The known base model that it is, or that it was fine-tuned from; None for a model of one's own."""
        return base_models.MODELS.get(self.folder) if self.known or self.training else None

    @property
    def geometry(self) -> RopeGeometry:
        """The pre-training geometry, from the configuration alone; InputError if no method can extend the model."""
        if self.known:
            return self.known.geometry
        from experiments.kit import load_model  # imports transformers, which a known model's geometry does not need

        return load_model.geometry(self.name)

    @property
    def context_length(self) -> int:
        """L, in tokens."""
        if self.known:
            return self.known.geometry.context_length
        from experiments.kit import load_model

        return load_model.context_length(self.name)

    @property
    def extends(self) -> bool:
        """Whether a method can extend it."""
        if self.known:
            return True
        from experiments.kit import load_model

        return load_model.plain_geometry(self.name) is not None

    def results(self, arguments: argparse.Namespace, tuned: dict | None = None) -> Path:
        """Where its records go, if --results does not say it: a model of one's own has a place apart.

        So has a fine-tune whose name a committed record of another one has, unless --replace is given.

        Args:
            tuned: the fine-tune, as its record states it; None for that of this checkpoint.
        """
        if tuned := tuned or self.training:
            run = records.run_of(tuned | {"training": tuned})
            there = records.path(records.RESULTS, self.folder, "finetune", run)
            another = there.is_file() and records.read(there).get("identity") != tuned["identity"]
        apart = not self.base or (tuned and another and not arguments.replace)
        return arguments.results or (records.OWN if apart else records.RESULTS)

    def facts(self, factor: float) -> dict:
        """The contents of model.json beside its records."""
        if self.base:
            return self.base.facts()
        from experiments.kit import load_model

        return load_model.facts(self.name, self.folder, factor)


def own_name(model: str) -> str:
    """The name of a model of one's own: the last part of its path or of its name on the hub."""
    path = Path(os.path.abspath(model)) if Path(model).is_dir() else Path(model)  # so that "." has a name
    return files.component(path.name)


# The fields of training.json that an evaluation reads.
_TRAINING = {"scale": str, "method": str, "factor": (int, float), "options": dict, "seed": int, "steps": int,
             "length": int, "identity": str, "model": dict}  # fmt: skip


def _training(model: Path) -> dict | None:
    """The training.json of a checkpoint that experiments.finetune made; None for any other.

    Raises:
        InputError: the training.json is not what experiments.finetune writes.
    """
    file = model / "training.json"
    if not file.is_file():
        return None
    training = files.read_json(file, "fine-tune again, or remove it to evaluate the checkpoint under its own name")
    for key, kind in _TRAINING.items():
        value = training.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{file} has {key} {value!r}, which experiments.finetune never writes; fine-tune again.")
    files.component(training["scale"])
    rope.get(training["method"])
    return training


def stated(method: str, options: dict) -> dict:
    """Options as a record states them: a path by its last part only, because it may move."""
    return options | {name: path.name for name, path in rope.named_files(method, options).items()}


def named(method: str | None, options: dict) -> dict:
    """What identifies the weights and files that a method's options name, if any."""
    paths = rope.named_files(method, options) if method else {}
    return {name: _content(path) for name, path in paths.items()}


def _content(path: Path) -> str | dict:
    """The hash of a file, or of each weight file in a directory; a record's hash leaves out environment and seconds."""
    if not path.is_file():
        from experiments.kit import load_model

        return load_model.weights(str(path))
    if path.suffix != ".json":
        return files.sha256(path)
    content = files.read_json(path, "give a file that is whole", (dict, list))
    if isinstance(content, dict):
        content = {key: value for key, value in content.items() if key not in ("environment", "seconds")}
    return records.identity(content=content)
