"""The model that --model names: a base model of experiments/base_models, a checkpoint of
experiments.finetune, or any other checkpoint, in a directory or on the hub; what identifies it, its
configuration, tokenizer and weights.

A base model's name wins over a directory of that name: `tiny` is the base model, `./tiny` the
directory.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import os
import pickle
import tempfile
from pathlib import Path

import torch
import transformers
from huggingface_hub import try_to_load_from_cache
from transformers import (
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import cached_file

from core import clex, files, rope
from core.discovery import later
from core.errors import InputError, in_one_line, meant
from core.extend import check_extension, extend
from core.geometry import RopeGeometry
from core.huggingface import attention as less_memory
from core.huggingface import configuration, schema
from core.huggingface.checkpoint import check_fit, check_weights, has_weights, misfit, read_config
from core.huggingface.configuration import EXTENSION, text_config
from core.huggingface.embedding import config_geometry
from core.huggingface.rotation import model_class, skeleton
from eval import hub, special_tokens
from eval.generation import model_stops
from experiments import base_models
from experiments.base_models.model import BaseModel
from experiments.kit import command_line, identity, records
from experiments.kit.processes import device

state = later("experiments.training.state")

# DeepSpeed, which transformers imports when saving, would warn about its own guess.
if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
# transformers would warn, on each load of an extended model, that it does not know the key
# `short_mscale`.
transformers.logging.set_verbosity_error()
transformers.AttentionInterface.register("sdpa", less_memory.sdpa)  # the same, with less memory

HALF = ("bfloat16", "float16")
# Weights in formats that are not used here.
_OTHER_FORMATS = ["*.h5", "*.msgpack", "*.onnx*", "*.gguf", "*.pth", "*.ot", "consolidated*"]


class Checkpoint:
    """A model to experiment on. Weights are read by :meth:`load` alone, and hashed by
    :attr:`provenance`.

    Attributes:
        name: what it is loaded by.
        model: the base model of that name in experiments/base_models, or None.
        training: what training.json of a fine-tuned checkpoint says, or None.
        exported: the name and the provenance of the model that it is with a method's RoPE and
            nothing else changed, a base model or one of one's own; or None.
        folder: the name of the folder of its records, and their key "scale".
        origin: the base model in experiments/base_models that it is, or that it was extended or
            fine-tuned from; None for a model of one's own.
    """

    def __init__(self, name: str, as_it_is: bool = False, beside: Path | None = None) -> None:
        """
        Args:
            as_it_is: no method is to be applied; a fine-tuned checkpoint then stands for the method
                of its training.
            beside: the folder of the records beside which an export's will stand (default: those of
                models of one's own).
        """
        if not name.strip():
            raise InputError(
                "--model is empty; give a base model, a directory, or a name on the Hugging Face "
                "hub."
            )
        self.name = name
        self.as_it_is = as_it_is
        self.model: BaseModel | None = base_models.MODELS.get(name)
        self.training = state.training(Path(name)) if as_it_is and not self.model else None
        self.exported = (
            None if self.model or self.training else self._exported(beside or records.OWN)
        )
        if self.training:
            self.folder = self.training["run"]["scale"]
        elif self.exported:
            self.folder = self.exported[0]
        else:
            self.folder = name if self.model else own_name(name)
        known = self.model or self.training or self.exported
        self.origin = base_models.MODELS.get(self.folder) if known else None

    # Where it is.

    @functools.cached_property
    def source(self) -> str:
        """The first argument of from_pretrained: a directory or a name on the hub.

        Raises:
            InputError: a package is missing, or it is a GGUF file.
        """
        source = self.model.source if self.model else self.name
        if source.startswith("repository:"):
            return str(records.ROOT / source.removeprefix("repository:"))
        if source.startswith("package:"):
            package = source.removeprefix("package:").split("/")[0]
            spec = importlib.util.find_spec(package)  # finds the package without importing it
            if spec is None:
                raise InputError(
                    f"the package {package} that carries {self.name}'s weights is not installed; "
                    f"run `make env`."
                )
            return spec.submodule_search_locations[0]
        if source.lower().endswith(".gguf"):
            raise InputError(
                f"{source} is a GGUF file, which can be extended here (experiments.extend --model "
                f"FILE.gguf --output "
                "NEW.gguf), not evaluated; give the checkpoint that it was made from."
            )
        return source

    @property
    def gguf_file(self) -> str | None:
        """The name of its file in a package; None for a checkpoint."""
        source = self.model.source if self.model else ""
        return source.split("/", 1)[1] if source.startswith("package:") else None

    @property
    def on_hub(self) -> bool:
        """Whether it is read from the hub."""
        return not Path(self.source).is_absolute() and not Path(self.source).exists()

    @property
    def pin(self) -> dict:
        """Further arguments of from_pretrained: the pinned commit of a repository on the hub, if it
        has one."""
        return (
            {"revision": hub.REVISIONS[self.source]}
            if self.source in hub.REVISIONS and self.on_hub
            else {}
        )

    def check_access(self) -> None:
        """Refuse, before any work, a model on the hub that is gated and cannot be read."""
        if self.on_hub:
            hub.reach(self.source)

    def check_trainable(self) -> None:
        """Refuse, before any work, weights that no fine-tune can change, or that do not fit; of the
        hub, they are downloaded for that."""
        if getattr(self.config, "quantization_config", None):
            raise InputError(
                f"the weights of {self.name} are quantised, and training does not change those; "
                "give the model before that."
            )
        if self.on_hub:
            check_fit(self.snapshot(), skeleton(self.config, rotates=False))

    def snapshot(self) -> Path:
        """The directory of its checkpoint, of the hub's at the pinned commit if there is one;
        downloaded if needed."""
        if not self.on_hub:
            return Path(self.source)
        download = functools.partial(
            hub.snapshot, self.source, "model", "try again, or give a directory"
        )
        directory = Path(download(ignore_patterns=[*_OTHER_FORMATS, "*.bin", "*.bin.index.json"]))
        whole = any(directory.glob("*.safetensors"))
        return directory if whole else Path(download(ignore_patterns=_OTHER_FORMATS))

    # What its configuration says.

    @property
    def config(self) -> PreTrainedConfig:
        """A copy of its configuration; InputError if there is none, or it states no context length
        or no RoPE."""
        return copy.deepcopy(self._config)

    @functools.cached_property
    def _config(self) -> PreTrainedConfig:
        self.check_access()
        if self.gguf_file:
            return AutoConfig.from_pretrained(self.source, gguf_file=self.gguf_file)
        directory = self._directory()
        config = read_config(directory)
        if not getattr(text_config(config), "rope_parameters", None):
            raise InputError(
                f"a {config.model_type!r} model has no RoPE parameters in its configuration; give "
                f"a model with RoPE."
            )
        model = skeleton(config, rotates=False)
        if not self.on_hub or has_weights(directory):
            check_fit(directory, model)
        return config

    def _directory(self) -> Path:
        """The directory of its config.json, of the hub's cache if it is on the hub."""
        folder = Path(self.source)
        if self.on_hub:
            try:
                return Path(cached_file(self.source, "config.json", **self.pin)).parent
            except Exception as error:  # a name that is none makes the libraries raise anything
                if self.model:
                    raise InputError(
                        f"{self.name} is {self.source} on the Hugging Face hub, and nothing of it "
                        f"can be read ({hub.reason(error)}); try again with a network, or give a "
                        "directory that holds it."
                    ) from error
                raise InputError(
                    f"no checkpoint at {self.name!r}{meant(self.name, base_models.MODELS)}; give a "
                    "directory with config.json and weights, a name on the Hugging Face hub, or "
                    f"one of {', '.join(base_models.MODELS)} ({hub.reason(error)})."
                ) from error
        if not (folder / "config.json").is_file():
            raise InputError(
                f"{folder} is no directory with a config.json; give that of a checkpoint"
                f"{f', or work in a checkout, which has {self.name}' if self.model else ''}."
            )
        return folder

    @property
    def architecture(self) -> PreTrainedConfig:
        """Its configuration; a base model that states its sizes needs no files and no network."""
        sizes = self.model.architecture if self.model else None
        return transformers.LlamaConfig(**sizes) if sizes else self.config

    @functools.cached_property
    def geometry(self) -> RopeGeometry:
        """The pre-training geometry, from the configuration alone; InputError if no method can
        extend the model."""
        return self.model.geometry if self.model else self.stated_geometry

    @property
    def stated_geometry(self) -> RopeGeometry:
        """The geometry that its configuration states; InputError if no method can extend it."""
        return config_geometry(self.config)

    @functools.cached_property
    def extends(self) -> bool:
        """Whether a method can extend it: others may have scaled its RoPE."""
        if self.model:
            return True
        config = self.config  # what is wrong with the configuration itself is refused
        try:
            config_geometry(config)
        except InputError:
            return False
        return True

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
        if (
            self.training
            or self.model
            or not self.as_it_is
            or not hasattr(text_config(self.config), EXTENSION)
        ):
            return self.training and self.training["run"]
        facts = check_extension(skeleton(self.config))
        method = facts.get("method")
        options = facts.get("options")
        if method not in rope.METHODS or options is None:
            method = None
            options = {}
        return {
            "method": method,
            "options": options,
            "factor": command_line.factor(str(facts["factor"])),
        }

    # What records say of it.

    @functools.cached_property
    def provenance(self) -> dict:
        """What identifies it in a record: its source, the SHA-256 of local weights, a hub
        repository's commit, and the content of its tokenizer and its configuration.

        No weights are loaded. A fine-tune's source is the name of its run, wherever it lies; that
        of another local checkpoint is the name of its directory. An export has that of the model
        before.
        """
        if self.exported:
            return self.exported[1]
        hashes = self._hashes
        content = self._content()  # reads the configuration, which brings it into the cache
        commit = self._commit()
        if self.training:
            source = records.run_of(self.training["run"] | {"training": self.training["run"]})
            if self.training["sha256"] != hashes:
                raise InputError(
                    f"the weights in {self.name} are not those that its training wrote; fine-tune "
                    f"again."
                )
        elif self.model:
            source = self.model.source
        else:
            source = Path(self.name).resolve().name if hashes else self.name
        return {
            "source": source,
            "sha256": hashes,
            **({"revision": commit} if commit else {}),
            **content,
        }

    @property
    def before_training(self) -> dict:
        """What identifies the base model; of a fine-tuned one, that which its training states."""
        return self.training["run"]["model"] if self.training else self.provenance

    @functools.cached_property
    def _hashes(self) -> dict[str, str]:
        return identity.of_weights(Path(self.source))

    def _exported(self, results: Path) -> tuple[str, dict] | None:
        """The name and the provenance of the model whose export by a method is evaluated: a base
        model, or one of one's own that has records in `results`; None if there is none."""
        file = Path(self.name) / "config.json"
        if not (self.as_it_is and file.is_file() and self.extends and self.extension):
            return None
        config = self.config
        text = text_config(config)
        before = getattr(text, EXTENSION).get("before") or {}
        vars(text).update({key: before[key] for key in configuration.CHANGED if key in before})
        delattr(text, EXTENSION)
        provenance = self._content() | {"sha256": self._hashes}
        provenance["config"] = identity.of_config(config)
        known = _known(provenance, results)
        return known if known and self._extends_to_itself(config) else None

    def _extends_to_itself(self, before: PreTrainedConfig) -> bool:
        """Whether the method that an export states makes its configuration of the one before, to
        the last bit."""
        stated = self.extension
        model = skeleton(before)
        with tempfile.TemporaryDirectory() as folder:
            try:
                extend(model, stated["method"], stated["factor"], **stated["options"])
                model.config.save_pretrained(folder)
                configuration.write(Path(folder), model.config)
                written = read_config(Path(folder))
                return identity.of_config(written) == identity.of_config(self.config)
            except InputError:  # the method is not known, or needs a file
                return False

    def _commit(self) -> str | None:
        """The commit of a repository on the hub: the pinned one, else the one of its cached
        configuration."""
        if not self.on_hub or self.pin:
            return self.pin.get("revision")
        cached = try_to_load_from_cache(self.source, "config.json")
        return Path(cached).parent.name if isinstance(cached, str) else None

    def _content(self) -> dict[str, str]:
        """Hashes of what the tokenizer and the configuration say."""
        return {
            "tokenizer": identity.of_tokenizer(self.tokenizer),
            "config": identity.of_config(self.config),
        }

    def facts(self, *factors: float) -> dict:
        """The contents of model.json beside its records; of a model that cannot be extended, its
        geometry is L alone.

        Args:
            factors: the scaling factors of a model of one's own.
        """
        known = self.before_training
        if self.origin:
            return self.origin.facts() | {"sha256": known["sha256"]}
        return {
            "title": self.folder,
            "model": known["source"],
            **{key: known[key] for key in records.IDENTIFIES if key in known},
            "geometry": self.geometry.to_dict()
            if self.extends
            else {"context_length": self.context_length},
            "factors": list(factors),
            "n_hat": {},
            "ablated": [],
        }

    @property
    def results(self) -> Path:
        """Where its records go, if --results does not say it; those of a model or fine-tune of
        one's own are apart."""
        return records.RESULTS if self.model else records.OWN

    # What is loaded.

    def chosen_dtype(self, option: str | None) -> str:
        """The dtype to evaluate it in: that of --dtype, else float32 on a CPU and the stated half
        precision on a GPU.

        Args:
            option: "float32", "bfloat16", "float16", or None.
        """
        if option or device() == "cpu":
            return option or "float32"
        dtype = str(self.origin.gpu_dtype if self.origin else self.config.dtype).removeprefix(
            "torch."
        )
        return dtype if dtype in HALF else "float32"

    def _json(self, name: str) -> dict | None:
        """What its JSON file of this name holds; None if it has none."""
        quiet = {"_raise_exceptions_for_missing_entries": False}
        file = cached_file(self.source, name, **quiet, **self.pin)
        return schema.read(Path(file)) if file else None

    @functools.cached_property
    def stops(self) -> frozenset[int]:
        """The ids that end its answers: those of generation_config.json, if there is one, else its
        configuration's."""
        stated = self._json("generation_config.json")
        if stated is None:
            return model_stops(GenerationConfig.from_model_config(self.config))
        return model_stops(GenerationConfig(eos_token_id=stated.get("eos_token_id")))

    @functools.cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer, as prompts are read: it puts nothing after a text. No weights are
        loaded."""
        config = self.architecture.get_text_config(decoder=True)
        return special_tokens.prepared(self.stock_tokenizer(), getattr(config, "vocab_size", None))

    def stock_tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer, as it is saved beside a model; no weights are loaded."""
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            self._json(name)
        try:
            if self.gguf_file:  # AutoTokenizer would parse the file a second time
                return PreTrainedTokenizerFast.from_pretrained(
                    self.source, gguf_file=self.gguf_file
                )
            return AutoTokenizer.from_pretrained(self.source, trust_remote_code=False, **self.pin)
        except Exception as error:  # a broken checkpoint makes the libraries raise anything
            reason = in_one_line(error)
            raise InputError(f"cannot load the tokenizer of {self.name}: {reason}") from error

    def load(self, dtype: str = "float32") -> PreTrainedModel:
        """The model, in evaluation mode, on a GPU if there is one.

        Raises:
            InputError: it cannot be loaded, or its configuration states no context length.
        """
        config = self.config
        arguments = self.pin
        if self.gguf_file:  # unpack the quantised blocks into a plain dense model
            unpacked = transformers.GgufConfig(dequantize=True)
            arguments = {"gguf_file": self.gguf_file, "quantization_config": unpacked}
        elif not self.on_hub:
            check_weights(Path(self.source))
        try:
            model, info = model_class(config).from_pretrained(
                self.source,
                config=config,
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, with the tensor's name
                **arguments,
            )
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # a broken checkpoint makes the libraries raise anything
            pickled = isinstance(
                error, pickle.UnpicklingError
            )  # torch would advise to load it nevertheless
            reason = (
                "a pickle of more than tensors; give safetensors" if pickled else in_one_line(error)
            )
            raise InputError(f"cannot load the weights of {self.name}: {reason}") from error
        # transformers fills missing weights with random numbers and only prints a table.
        if wrong := misfit(model, info):
            raise InputError(
                f"the weights of {self.name} do not fit its configuration: {wrong}; "
                "give a complete checkpoint of this architecture."
            )
        clex.restore(model, self.source)
        return model.eval().to(device())


def own_name(model: str) -> str:
    """The name of a model of one's own: the last part of its path or of its name on the hub."""
    path = Path(model)
    if path.is_dir():
        path = Path(os.path.abspath(path))  # so that "." has a name
    return files.component(path.name)


def _known(provenance: dict, results: Path) -> tuple[str, dict] | None:
    """The name and the whole provenance of a model that has this one, see :meth:`_exported`."""
    for base in map(Checkpoint, base_models.MODELS):
        with contextlib.suppress(InputError):  # its package is missing
            if (
                base._hashes == provenance["sha256"]
                and provenance.items() <= base.provenance.items()
            ):
                return base.name, base.provenance
    for file in sorted(results.glob(f"*/{records.MODEL}")):
        with contextlib.suppress(InputError):  # of another model, and broken
            facts = records.read_model(file)
            if provenance.items() <= facts.items():
                return file.parent.name, {"source": facts["model"], **provenance}
    return None
