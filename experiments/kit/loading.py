"""Where the files of a checkpoint are, and what they hold: its configuration, its tokenizer, and
its weights. What does not fit together is refused.

Short hashes tell models apart, in whatever files they stand. For these no weights are loaded.
"""

import functools
import hashlib
import importlib.util
import json
import os
import pickle
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from huggingface_hub import try_to_load_from_cache
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import cached_file

import records
from core import CLEX_FILE, clex, files
from core.errors import InputError, in_one_line, meant
from core.huggingface import attention as less_memory
from core.huggingface import schema
from core.huggingface.checkpoint import (
    check_fit,
    check_weights,
    has_weights,
    misfit,
    read_config,
    weights,
)
from core.huggingface.configuration import EXTENSION, text_config
from core.huggingface.rotation import model_class, skeleton
from eval import hub
from experiments import base_models
from experiments.kit.processes import device

# DeepSpeed, which transformers imports when saving, would warn about its own guess.
if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
# transformers would warn, on each load of an extended model, that it does not know the key
# `short_mscale`.
transformers.logging.set_verbosity_error()
transformers.AttentionInterface.register("sdpa", less_memory.sdpa)  # the same, with less memory
# Weights in formats that are not used here.
_OTHER_FORMATS = ["*.h5", "*.msgpack", "*.onnx*", "*.gguf", "*.pth", "*.ot", "consolidated*"]
# Fields of a configuration that change no number: who wrote it, how weights were drawn, and the
# dtype, which records state themselves. Of others, those that its class knows count, and those that
# models read whose classes do not.
_NO_EFFECT = (
    "_name_or_path",
    "transformers_version",
    "dtype",
    "torch_dtype",
    "architectures",
    "use_cache",
    "initializer_range",
    "initializer_factor",
)
_TEXT = " A naïve\tﬁrst line, isn't it ?\n\n2nd\u00a0line 😀"  # what tokenizers read differently
DROPOUT = "dropout", "pdrop"  # the ends of the fields that training alone reads
_ALSO_READ = {
    "head_dim",
    "is_causal",
    "sliding_window",
    "router_bias",
    "layer_types",
    "quantization_config",
    EXTENSION,
}


@dataclass(frozen=True)
class Source:
    """What from_pretrained takes to find a checkpoint.

    Attributes:
        name: the name of the model, for messages.
        place: a directory or a name on the hub.
        gguf_file: the name of its file in a package; None for a checkpoint.
    """

    name: str
    place: str
    gguf_file: str | None = None

    @functools.cached_property
    def on_hub(self) -> bool:
        """Whether it is read from the hub."""
        return not Path(self.place).is_absolute() and not Path(self.place).exists()

    @property
    def pin(self) -> dict:
        """Further arguments of from_pretrained: the pinned commit of a repository on the hub, if it
        has one."""
        pinned = self.place in hub.REVISIONS and self.on_hub
        return {"revision": hub.REVISIONS[self.place]} if pinned else {}

    @property
    def commit(self) -> str | None:
        """The commit of a repository on the hub: the pinned one, else the one of its cached
        configuration."""
        if not self.on_hub or self.pin:
            return self.pin.get("revision")
        cached = try_to_load_from_cache(self.place, "config.json")
        return Path(cached).parent.name if isinstance(cached, str) else None

    def check_access(self) -> None:
        """Refuse, before any work, a model on the hub that is gated and cannot be read."""
        if self.on_hub:
            hub.reach(self.place)

    def directory(self) -> Path:
        """The directory of its config.json, of the hub's cache if it is on the hub.

        Raises:
            InputError: there is none.
        """
        is_base = self.name in base_models.MODELS
        if self.on_hub:
            try:
                return Path(cached_file(self.place, "config.json", **self.pin)).parent
            except Exception as error:  # a name that is none makes the libraries raise anything
                if is_base:
                    raise InputError(
                        f"{self.name} is {self.place} on the Hugging Face hub, and nothing of it "
                        f"can be read ({hub.reason(error)}); try again with a network, or give a "
                        "directory that holds it."
                    ) from error
                raise InputError(
                    f"no checkpoint at {self.name!r}{meant(self.name, base_models.MODELS)}; give a "
                    "directory with config.json and weights, a name on the Hugging Face hub, or "
                    f"one of {', '.join(base_models.MODELS)} ({hub.reason(error)})."
                ) from error
        folder = Path(self.place)
        if not (folder / "config.json").is_file():
            raise InputError(
                f"{folder} is no directory with a config.json; give that of a checkpoint"
                f"{f', or work in a checkout, which has {self.name}' if is_base else ''}."
            )
        return folder

    def snapshot(self) -> Path:
        """The directory of the whole checkpoint, of the hub's at the pinned commit if there is one;
        downloaded if needed."""
        if not self.on_hub:
            return Path(self.place)
        otherwise = "try again, or give a directory"
        for others in ([*_OTHER_FORMATS, "*.bin", "*.bin.index.json"], _OTHER_FORMATS):
            found = hub.snapshot(self.place, "model", otherwise, ignore_patterns=others)
            if any(Path(found).glob("*.safetensors")):
                break
        return Path(found)

    def file(self, name: str) -> Path | None:
        """Its file of this name, of the hub's downloaded if needed; None if it has none."""
        found = cached_file(
            self.place, name, _raise_exceptions_for_missing_entries=False, **self.pin
        )
        return Path(found) if found else None

    def json(self, name: str) -> dict | None:
        """What its JSON file of this name holds; None if it has none."""
        file = self.file(name)
        return schema.read(file) if file else None


def find(name: str) -> Source:
    """Where the base model of this name is, or the checkpoint in this directory or on the hub.

    Raises:
        InputError: a package is missing, or it is a GGUF file.
    """
    base = base_models.MODELS.get(name)
    place = base.source if base else name
    if place.startswith("repository:"):
        return Source(name, str(records.ROOT / place.removeprefix("repository:")))
    if place.startswith("package:"):
        package, file = place.removeprefix("package:").split("/", 1)
        spec = importlib.util.find_spec(package)  # finds the package without importing it
        if spec is None:
            raise InputError(
                f"the package {package} that carries {name}'s weights is not installed; "
                f"run `make env`."
            )
        return Source(name, spec.submodule_search_locations[0], file)
    if place.lower().endswith(".gguf"):
        raise InputError(
            f"{place} is a GGUF file, which can be extended here (experiments.extend --model "
            f"FILE.gguf --output "
            "NEW.gguf), not evaluated; give the checkpoint that it was made from."
        )
    return Source(name, place)


def configuration(source: Source) -> PreTrainedConfig:
    """The configuration; InputError if there is none, or it states no context length or no RoPE."""
    source.check_access()
    if source.gguf_file:
        return AutoConfig.from_pretrained(source.place, gguf_file=source.gguf_file)
    directory = source.directory()
    config = read_config(directory)
    if not getattr(text_config(config), "rope_parameters", None):
        raise InputError(
            f"a {config.model_type!r} model has no RoPE parameters in its configuration; give "
            f"a model with RoPE."
        )
    model = skeleton(config, rotates=False)
    if not source.on_hub or has_weights(directory):
        check_fit(directory, model)
    return config


def check_trainable(source: Source, config: PreTrainedConfig) -> None:
    """Refuse, before any work, weights that no fine-tune can change, or that do not fit; of the
    hub, they are downloaded for that."""
    if getattr(config, "quantization_config", None):
        raise InputError(
            f"the weights of {source.name} are quantised, and training does not change those; "
            "give the model before that."
        )
    if source.on_hub:
        check_fit(source.snapshot(), skeleton(config, rotates=False))


def stock_tokenizer(source: Source) -> PreTrainedTokenizerBase:
    """The tokenizer, as it is saved beside a model."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        source.json(name)
    try:
        if source.gguf_file:  # AutoTokenizer would parse the file a second time
            return PreTrainedTokenizerFast.from_pretrained(source.place, gguf_file=source.gguf_file)
        return AutoTokenizer.from_pretrained(source.place, trust_remote_code=False, **source.pin)
    except Exception as error:  # a broken checkpoint makes the libraries raise anything
        raise InputError(
            f"cannot load the tokenizer of {source.name}: {in_one_line(error)}"
        ) from error


def load(source: Source, config: PreTrainedConfig, dtype: str, spread: bool) -> PreTrainedModel:
    """The model, in evaluation mode, on a GPU if there is one.

    Args:
        config: its configuration, with which the weights must fit.
        spread: over all GPUs, and the memory beside them, if it does not fit on one, or if it is
            quantised, which transformers places.

    Raises:
        InputError: it cannot be loaded.
    """
    arguments = source.pin
    if source.gguf_file:  # unpack the quantised blocks into a plain dense model
        unpacked = transformers.GgufConfig(dequantize=True)
        arguments = {"gguf_file": source.gguf_file, "quantization_config": unpacked}
    elif spread and _needs_several(config, dtype):
        arguments["device_map"] = "auto"
    if not (source.gguf_file or source.on_hub):
        check_weights(Path(source.place))
    try:
        model, info = model_class(config).from_pretrained(
            source.place,
            config=config,
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, with the tensor's name
            **arguments,
        )
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a broken checkpoint makes the libraries raise anything
        # torch would advise to load a pickle nevertheless
        pickled = isinstance(error, pickle.UnpicklingError)
        reason = (
            "a pickle of more than tensors; give safetensors" if pickled else in_one_line(error)
        )
        raise InputError(f"cannot load the weights of {source.name}: {reason}") from error
    # transformers fills missing weights with random numbers and only prints a table.
    if wrong := misfit(model, info):
        raise InputError(
            f"the weights of {source.name} do not fit its configuration: {wrong}; "
            "give a complete checkpoint of this architecture."
        )
    if learned := source.file(CLEX_FILE):
        clex.restore(model, learned.parent)
    if not hasattr(model, "hf_device_map"):
        model.to(device())
    return model.eval()


def _needs_several(config: PreTrainedConfig, dtype: str) -> bool:
    """Whether the weights have no room on this process's GPU, or are quantised."""
    if device() == "cpu":
        return False
    if getattr(config, "quantization_config", None):
        return True
    free, _ = torch.cuda.mem_get_info(device())
    count = skeleton(config, rotates=False).num_parameters()
    return count * getattr(torch, dtype).itemsize > free


# What tells models apart.


def tokenizer_hash(tokens: PreTrainedTokenizerBase) -> str:
    """A hash of how a tokenizer reads a text."""
    if tokens.is_fast:
        rules = json.loads(tokens.backend_tokenizer.to_str())
        del rules["padding"], rules["truncation"]
    else:
        rules = {
            "class": type(tokens).__name__,
            "vocabulary": tokens.get_vocab(),
            "read": tokens(_TEXT).input_ids,
        }
    if tokens.clean_up_tokenization_spaces:
        rules["cleans"] = True
    special = tokens.special_tokens_map
    return records.identity(rules=rules, special=special, added=tokens("").input_ids)


def config_hash(config: PreTrainedConfig) -> str:
    """A hash of all in a configuration that changes what the model computes."""
    return records.identity(**_effective(config))


def _effective(config: PreTrainedConfig) -> dict:
    """What of a configuration changes what the model computes; in a composite model's are those of
    its parts."""
    known = type(config)().to_dict().keys() | _ALSO_READ
    fields = {}
    for key, value in config.to_diff_dict().items():
        if key in known and key not in _NO_EFFECT and not key.endswith(DROPOUT):
            part = getattr(config, key, None)
            fields[key] = _effective(part) if isinstance(part, PreTrainedConfig) else value
    if EXTENSION in fields:
        fields[EXTENSION] = {
            key: fields[EXTENSION].get(key) for key in ("context_length", "rope_theta", "factor")
        }
    return fields


def weights_hashes(directory: Path) -> dict[str, str]:
    """The SHA-256 of each file of weights that is loaded from a directory, by its path there.

    Of safetensors it is that of the names, dtypes, shapes and bytes of all tensors, in the order of
    their names, whether they lie in one file or in shards.
    """
    found = weights(directory)
    opened = {
        file: safe_open(directory / file, "pt") for file in found if file.suffix == ".safetensors"
    }
    holders = {name: opened[file] for file in opened for name in found[file]}
    hashes = {}
    if holders:
        whole = hashlib.sha256()
        for name in sorted(holders):
            tensor = holders[name].get_tensor(name)
            whole.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            whole.update(tensor.reshape(-1).view(torch.uint8).numpy())
        hashes["tensors"] = whole.hexdigest()
    others = [file for file in found if file.suffix not in (".json", ".safetensors")]
    if not found:
        others = [file.relative_to(directory) for file in directory.glob("*.gguf")]
    if (directory / CLEX_FILE).is_file():
        others.append(Path(CLEX_FILE))
    return hashes | {str(file): files.sha256(directory / file) for file in sorted(others)}
