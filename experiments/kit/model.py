"""The model that --model names: a base model of experiments/base_models, a checkpoint of
experiments.finetune, an export of either, or any other checkpoint, in a directory or on the hub.

A base model's name wins over a directory of that name: `tiny` is the base model, `./tiny` the
directory.
"""

import contextlib
import copy
import functools
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import transformers
from transformers import (
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

import records
from core import files, rope
from core.errors import InputError
from core.extend import check_extension, extend
from core.geometry import RopeGeometry
from core.huggingface import configuration
from core.huggingface.checkpoint import read_config
from core.huggingface.configuration import EXTENSION, text_config
from core.huggingface.embedding import rope_geometry
from core.huggingface.rotation import skeleton
from eval import special_tokens
from eval.generation import model_stops
from experiments import base_models
from experiments.base_models.model import BaseModel, own_model
from experiments.kit import command_line, loading
from experiments.kit.loading import Source
from experiments.kit.processes import device
from records import trained

HALF = ("bfloat16", "float16")


@dataclass(frozen=True)
class Model:
    """A model to experiment on, resolved once by :func:`resolve`. Weights are read by :meth:`load`
    alone, and hashed by :attr:`identity`.

    Attributes:
        name: what it is loaded by.
        folder: the name of the folder of its records, and their key "scale".
        base: the base model that it is; None for any other checkpoint.
        origin: the base model that it is, or was extended or fine-tuned from; None for a model of
            one's own.
        as_it_is: no method is to be applied; what extended the checkpoint is its method then.
        training: what training.json of a fine-tuned checkpoint says; else None.
        before: what identifies the model of which it is an export with a method's RoPE and nothing
            else changed, a base model or one of one's own; else None.
    """

    name: str
    folder: str
    base: BaseModel | None = None
    origin: BaseModel | None = None
    as_it_is: bool = False
    training: dict | None = None
    before: dict | None = None

    @functools.cached_property
    def source(self) -> Source:
        """Where its files are; InputError if a package is missing, or it is a GGUF file."""
        return loading.find(self.name)

    # What its configuration says.

    @functools.cached_property
    def config(self) -> PreTrainedConfig:
        """Its configuration, which stays as it is: what is to change it takes a copy. InputError if
        there is none, or it states no context length or no RoPE."""
        return loading.configuration(self.source)

    @property
    def architecture(self) -> PreTrainedConfig:
        """Its configuration; a base model that states its sizes needs no files and no network."""
        if self.base and self.base.architecture:
            return transformers.LlamaConfig(**self.base.architecture)
        return self.config

    @functools.cached_property
    def geometry(self) -> RopeGeometry:
        """The pre-training geometry, from the configuration alone; InputError if no method can
        extend the model."""
        return self.base.geometry if self.base else rope_geometry(skeleton(self.config))

    @functools.cached_property
    def extends(self) -> bool:
        """Whether a method can extend it: others may have scaled its RoPE."""
        if not self.base:
            self.config  # noqa: B018  (what is wrong with the configuration itself is refused)
        try:
            return bool(self.geometry)
        except InputError:
            return False

    @property
    def context_length(self) -> int:
        """L in tokens: that of pre-training if a method can extend it, else what its configuration
        states."""
        return self.geometry.context_length if self.extends else self.stated_length

    @property
    def stated_length(self) -> int:
        """The context length that its configuration states, in tokens."""
        return text_config(self.config).max_position_embeddings

    @functools.cached_property
    def extension(self) -> dict | None:
        """The method, options and factor s by which a checkpoint that is evaluated as it is was
        extended.

        A fine-tune has those of its training, an export those that its configuration states, which
        are checked against its RoPE. An export of an older or a newer version states no method that
        is known here: its method is None. None for any other model.
        """
        if self.training:
            return self.training["run"]
        if self.base or not self.as_it_is or not hasattr(text_config(self.config), EXTENSION):
            return None
        facts = check_extension(skeleton(self.config))
        known = facts.get("method") in rope.METHODS and facts.get("options") is not None
        return {
            "method": facts["method"] if known else None,
            "options": facts["options"] if known else {},
            "factor": command_line.factor(str(facts["factor"])),
        }

    def settings(self, *factors: float) -> BaseModel:
        """How a suite measures it, with these scaling factors: as the base model that it began as,
        or as a model of one's own."""
        if self.origin:
            return replace(self.origin, factors=factors)
        return own_model(self.folder, self.name, self.geometry, factors)

    # What records say of it.

    @functools.cached_property
    def identity(self) -> dict:
        """What identifies it in a record: its source, the SHA-256 of local weights, a hub
        repository's commit, and the content of its tokenizer and its configuration.

        No weights are loaded. A fine-tune's source is the name of its run, wherever it lies; that
        of another local checkpoint is the name of its directory. An export has that of the model
        before.
        """
        if self.before:
            return self.before
        hashes = self.hashes
        content = {
            "tokenizer": loading.tokenizer_hash(self.tokenizer),
            "config": loading.config_hash(self.config),
        }
        commit = self.source.commit  # known as the configuration was read into the cache
        if self.training:
            stated = records.run_of(self.training["run"] | {"training": self.training["run"]})
            if self.training["sha256"] != hashes:
                raise InputError(
                    f"the weights in {self.name} are not those that its training wrote; fine-tune "
                    f"again."
                )
        elif self.base:
            stated = self.base.source
        else:
            stated = Path(self.name).resolve().name if hashes else self.name
        known = {"source": stated, "sha256": hashes}
        if commit and not self.training:
            known["revision"] = commit
        return known | content

    @property
    def before_training(self) -> dict:
        """What identifies the base model; of a fine-tuned one, that which its training states."""
        return self.training["run"]["model"] if self.training else self.identity

    @functools.cached_property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of its local files of weights; of the hub's, if it is a fine-tune."""
        on_hub = self.training and self.source.on_hub
        return loading.weights_hashes(self.source.snapshot() if on_hub else Path(self.source.place))

    def facts(self, *factors: float) -> dict:
        """The contents of model.json beside its records; of a model that cannot be extended, its
        geometry is L alone.

        Args:
            factors: the scaling factors of a model of one's own.
        """
        known = self.before_training
        if self.origin:
            return self.origin.facts() | {"sha256": known["sha256"]}
        geometry = {"context_length": self.context_length}
        if self.extends:
            geometry = self.geometry.to_dict()
        return {
            "title": self.folder,
            "model": known["source"],
            **{key: known[key] for key in records.IDENTIFIES if key in known},
            "geometry": geometry,
            "factors": list(factors),
            "n_hat": self.settings(*factors).facts()["n_hat"] if self.extends else {},
            "ablated": [],
        }

    # What is loaded.

    def chosen_dtype(self, option: str | None) -> str:
        """The dtype to evaluate it in: that of --dtype, else float32 on a CPU and the stated half
        precision on a GPU.

        Args:
            option: "float32", "bfloat16", "float16", or None.
        """
        if option or device() == "cpu":
            return option or "float32"
        stated = self.origin.gpu_dtype if self.origin else self.config.dtype
        dtype = str(stated).removeprefix("torch.")
        return dtype if dtype in HALF else "float32"

    @functools.cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer, as prompts are read: it puts nothing after a text. No weights are
        loaded."""
        embeddings = getattr(text_config(self.architecture), "vocab_size", None)
        return special_tokens.prepared(loading.stock_tokenizer(self.source), embeddings)

    @functools.cached_property
    def stops(self) -> frozenset[int]:
        """The ids that end its answers: those of generation_config.json, if there is one, else
        those of the configuration."""
        stated = self.source.json("generation_config.json")
        if stated is None:
            return model_stops(GenerationConfig.from_model_config(self.config))
        return model_stops(GenerationConfig(eos_token_id=stated.get("eos_token_id")))

    @functools.cached_property
    def learned_from(self) -> list[dict]:
        """The books that its fine-tunes read, each by "title" and "sha256"; InputError if its
        training.json is not what experiments.finetune wrote."""
        if self.base:
            return []
        found = map(self.source.file, (trained.FILE, trained.OF_BASE))
        stated = (trained.read(file) for file in found if file)
        return [book for facts in filter(None, stated) for book in trained.books(facts)]

    def load(self, dtype: str = "float32", spread: bool = False) -> PreTrainedModel:
        """The model, in evaluation mode, on a GPU if there is one, see :func:`loading.load`;
        InputError if it cannot be loaded, its configuration states no context length, or its RoPE
        is not that of the base model."""
        held = self.base and rope_geometry(skeleton(self.config))
        if held and held != self.base.geometry:
            raise InputError(
                f"experiments/base_models/ states {self.base.geometry} of {self.name}, and its "
                f"configuration {held}; correct the file."
            )
        return loading.load(self.source, self.config, dtype, spread)


def resolve(name: str, as_it_is: bool = False, beside: Path | None = None) -> Model:
    """The model that --model names.

    Args:
        as_it_is: no method is to be applied; a fine-tuned checkpoint then stands for the method of
            its training.
        beside: the folder of the records beside which an export's will stand (default: those of
            models of one's own).
    """
    if not name.strip():
        raise InputError(
            "--model is empty; give a base model, a directory, or a name on the Hugging Face hub."
        )
    if base := base_models.MODELS.get(name):
        return Model(name, name, base, base, as_it_is)
    model = Model(name, own_name(name), as_it_is=as_it_is)
    if as_it_is and (stated := training_of(model)):
        folder = stated["run"]["scale"]
        origin = base_models.MODELS.get(folder)
        if origin and stated["run"]["model"]["source"] != origin.source:
            origin = None  # a model of one's own in a folder of that name
        return Model(name, folder, origin=origin, as_it_is=True, training=stated)
    return replace(model, **_before_export(model, beside or records.OWN))


def training_of(model: Model) -> dict | None:
    """What a fine-tuned checkpoint says of its training; None of any other."""
    if not model.source.on_hub:
        return trained.in_folder(Path(model.source.place))
    model.source.check_access()
    model.source.directory()  # refuses a name that is none
    file = model.source.file(trained.FILE)
    return trained.read(file) if file else None


def own_name(model: str) -> str:
    """The name of a model of one's own: the last part of its path or of its name on the hub."""
    path = Path(model)
    if path.is_dir():
        path = Path(os.path.abspath(path))  # so that "." has a name
    return files.component(path.name or "root")  # of the file system, which has none


# Exports.


def _before_export(model: Model, results: Path) -> dict:
    """The fields that an export by a method, which is evaluated as it is, has of the model before:
    a base model, or one of one's own that has records in `results`. None of any other model."""
    if not ((Path(model.name) / "config.json").is_file() and model.extension):
        return {}
    config = copy.deepcopy(model.config)
    text = text_config(config)
    before = getattr(text, EXTENSION).get("before") or {}
    vars(text).update({key: before[key] for key in configuration.CHANGED if key in before})
    delattr(text, EXTENSION)
    content = {
        "sha256": model.hashes,
        "tokenizer": loading.tokenizer_hash(model.tokenizer),
        "config": loading.config_hash(config),
    }
    fields = _known(content, results)
    return fields if fields and _extends_to(model, config) else {}


def _extends_to(exported: Model, before: PreTrainedConfig) -> bool:
    """Whether the method that an export states makes its configuration of the one before, to the
    last bit."""
    stated = exported.extension
    model = skeleton(before)
    with tempfile.TemporaryDirectory() as folder:
        try:
            extend(model, stated["method"], stated["factor"], **stated["options"])
            model.config.save_pretrained(folder)
            configuration.write(Path(folder), model.config)
            config = read_config(Path(folder))
            return loading.config_hash(config) == loading.config_hash(exported.config)
        except InputError:  # the method is not known, or needs a file
            return False


def _known(content: dict, results: Path) -> dict:
    """The fields that say which model has this content, see :func:`_before_export`; none if none
    has."""
    for base in map(resolve, base_models.MODELS):
        with contextlib.suppress(InputError):  # its package is missing
            if base.hashes == content["sha256"] and content.items() <= base.identity.items():
                return {"folder": base.name, "origin": base.base, "before": base.identity}
    for file in sorted(results.glob(f"*/{records.MODEL}")):
        with contextlib.suppress(InputError):  # of another model, and broken
            facts = records.read_model(file)
            if content.items() <= facts.items():
                source = facts["model"]
                bases = (base for base in base_models.MODELS.values() if base.source == source)
                return {
                    "folder": file.parent.name,
                    "origin": next(bases, None),
                    "before": {"source": source, **content},
                }
    return {}
