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
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

import records
from core import files, rope
from core.errors import InputError
from core.extend import check_extension, extend
from core.geometry import RopeGeometry
from core.huggingface import configuration
from core.huggingface.checkpoint import read_config
from core.huggingface.configuration import EXTENSION, text_config
from core.huggingface.embedding import config_geometry
from core.huggingface.rotation import skeleton
from eval import special_tokens
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

    @property
    def config(self) -> PreTrainedConfig:
        """A copy of its configuration; InputError if there is none, or it states no context length
        or no RoPE."""
        return copy.deepcopy(self._config)

    @functools.cached_property
    def _config(self) -> PreTrainedConfig:
        return loading.configuration(self.source)

    @property
    def architecture(self) -> PreTrainedConfig:
        """Its configuration; a base model that states its sizes needs no files and no network."""
        sizes = self.base.architecture if self.base else None
        return transformers.LlamaConfig(**sizes) if sizes else self.config

    @functools.cached_property
    def geometry(self) -> RopeGeometry:
        """The pre-training geometry, from the configuration alone; InputError if no method can
        extend the model."""
        return self.base.geometry if self.base else config_geometry(self.config)

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
        method = facts.get("method")
        options = facts.get("options")
        if method not in rope.METHODS or options is None:
            method = None
            options = {}
        factor = command_line.factor(str(facts["factor"]))
        return {"method": method, "options": options, "factor": factor}

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
        content = _content(self)  # reads the configuration, which brings it into the cache
        commit = self.source.commit
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
        revision = {"revision": commit} if commit else {}
        return {"source": stated, "sha256": hashes, **revision, **content}

    @property
    def before_training(self) -> dict:
        """What identifies the base model; of a fine-tuned one, that which its training states."""
        return self.training["run"]["model"] if self.training else self.identity

    @functools.cached_property
    def hashes(self) -> dict[str, str]:
        """The SHA-256 of its local files of weights."""
        return loading.weights_hashes(Path(self.source.place))

    def facts(self, *factors: float) -> dict:
        """The contents of model.json beside its records; of a model that cannot be extended, its
        geometry is L alone.

        Args:
            factors: the scaling factors of a model of one's own.
        """
        known = self.before_training
        if self.origin:
            return self.origin.facts() | {"sha256": known["sha256"]}
        of_own = {"context_length": self.context_length}
        return {
            "title": self.folder,
            "model": known["source"],
            **{key: known[key] for key in records.IDENTIFIES if key in known},
            "geometry": self.geometry.to_dict() if self.extends else of_own,
            "factors": list(factors),
            "n_hat": {},
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
        config = self.architecture.get_text_config(decoder=True)
        stock = loading.stock_tokenizer(self.source)
        return special_tokens.prepared(stock, getattr(config, "vocab_size", None))

    @functools.cached_property
    def stops(self) -> frozenset[int]:
        """The ids that end its answers."""
        return loading.stops(self.source, self.config)

    def load(self, dtype: str = "float32", spread: bool = False) -> PreTrainedModel:
        """The model, in evaluation mode, on a GPU if there is one, see :func:`loading.load`;
        InputError if it cannot be loaded, or its configuration states no context length."""
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
    if as_it_is and (stated := trained.read(Path(name))):
        folder = stated["run"]["scale"]
        origin = base_models.MODELS.get(folder)
        return Model(name, folder, origin=origin, as_it_is=True, training=stated)
    model = Model(name, own_name(name), as_it_is=as_it_is)
    known = _before_export(model, beside or records.OWN)
    if known is None:
        return model
    folder, before = known
    return replace(model, folder=folder, origin=base_models.MODELS.get(folder), before=before)


def own_name(model: str) -> str:
    """The name of a model of one's own: the last part of its path or of its name on the hub."""
    path = Path(model)
    if path.is_dir():
        path = Path(os.path.abspath(path))  # so that "." has a name
    return files.component(path.name or "root")  # of the file system, which has none


def _content(model: Model) -> dict[str, str]:
    """Hashes of what its tokenizer and its configuration say."""
    return {
        "tokenizer": loading.tokenizer_hash(model.tokenizer),
        "config": loading.config_hash(model.config),
    }


# Exports.


def _before_export(model: Model, results: Path) -> tuple[str, dict] | None:
    """The name and the identity of the model whose export by a method is evaluated: a base model,
    or one of one's own that has records in `results`; None if there is none."""
    file = Path(model.name) / "config.json"
    if not (model.as_it_is and file.is_file() and model.extends and model.extension):
        return None
    config = model.config
    text = text_config(config)
    before = getattr(text, EXTENSION).get("before") or {}
    vars(text).update({key: before[key] for key in configuration.CHANGED if key in before})
    delattr(text, EXTENSION)
    content = _content(model) | {"sha256": model.hashes, "config": loading.config_hash(config)}
    known = _known(content, results)
    return known if known and _extends_to(model, config) else None


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
            written = read_config(Path(folder))
            return loading.config_hash(written) == loading.config_hash(exported.config)
        except InputError:  # the method is not known, or needs a file
            return False


def _known(content: dict, results: Path) -> tuple[str, dict] | None:
    """The name and the whole identity of the model with this content, see
    :func:`_before_export`."""
    for base in map(resolve, base_models.MODELS):
        with contextlib.suppress(InputError):  # its package is missing
            if base.hashes == content["sha256"] and content.items() <= base.identity.items():
                return base.name, base.identity
    for file in sorted(results.glob(f"*/{records.MODEL}")):
        with contextlib.suppress(InputError):  # of another model, and broken
            facts = records.read_model(file)
            if content.items() <= facts.items():
                return file.parent.name, {"source": facts["model"], **content}
    return None
