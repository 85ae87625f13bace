"""Load a model to experiment on: a known base model, a local checkpoint or a hub name; and what identifies it."""

from __future__ import annotations

import copy
import functools
import importlib.util
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

import gguf
import torch
import transformers
from huggingface_hub import snapshot_download, try_to_load_from_cache
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers import models as tokenizer_models
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from core import clex, files
from core.errors import InputError, in_one_line
from core.extend import check_extension
from core.huggingface import attention as less_memory
from core.huggingface.configuration import EXTENSION, text_config
from core.huggingface.embedding import config_geometry
from core.huggingface.rotation import skeleton
from core.rope import RopeGeometry
from eval import hub, special_tokens
from experiments.base_models import MODELS
from experiments.base_models.model import Model
from experiments.kit import records
from experiments.kit.processes import device
from experiments.kit.records import ROOT

if not torch.cuda.is_available():  # DeepSpeed, which transformers imports when saving, would warn about its own guess
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
# transformers would warn, on each load of an extended model, that it does not know the key `short_mscale`.
transformers.logging.set_verbosity_error()
transformers.AttentionInterface.register("sdpa", less_memory.sdpa)  # the same, with less memory


HALF = ("bfloat16", "float16")


@dataclass
class Loaded:
    """A model and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def chosen_dtype(option: str | None, name: str, base: Model | None = None) -> str:
    """The dtype to evaluate a model in: that of --dtype, else float32 on a CPU and the stated half precision on a GPU.

    Args:
        option: "float32", "bfloat16", "float16", or None.
        name: the model's name, as for :func:`load`.
        base: the known base model that it is or was fine-tuned from, whose dtype it has.
    """
    if option or device() == "cpu":
        return option or "float32"
    stated = str(base.gpu_dtype if base else check_config(name).dtype).removeprefix("torch.")
    return stated if stated in HALF else "float32"


def attention(dtype: str) -> str | None:
    """FlashAttention-2 if it is installed, there is a GPU and the dtype is float16 or bfloat16.

    Otherwise None, for transformers' default: SDPA for every model that has it.
    """
    usable = transformers.utils.is_flash_attn_2_available() and dtype in HALF
    return "flash_attention_2" if usable else None


def load(name: str, dtype: str = "float32") -> Loaded:
    """Load a causal language model by its known name, path or hub name, in evaluation mode on a GPU if there is one.

    Raises:
        InputError: nothing under that name can be loaded, or the configuration states no context length.
    """
    source, arguments = _resolve(name)
    config = check_config(name)
    if source == "random":
        torch.manual_seed(0)
        # from_config would draw other weights under ZeRO-3.
        model = transformers.LlamaForCausalLM(config).to(getattr(torch, dtype))
        return Loaded(model.eval().to(device()), tokenizer(name))
    if "gguf_file" in arguments:  # unpack the quantised blocks into a plain dense model
        arguments |= {"quantization_config": transformers.GgufConfig(dequantize=True), "config": config}
    # transformers would build the same map of names for each module of a GGUF file, which takes most of the time.
    names = functools.cache(gguf.get_tensor_name_map)
    try:
        with mock.patch.object(gguf, "get_tensor_name_map", names):
            model, info = AutoModelForCausalLM.from_pretrained(
                source,
                dtype=getattr(torch, dtype),
                attn_implementation=attention(dtype),
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, with the tensor's name
                **arguments,
                **pin(source),
            )
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a broken checkpoint makes the libraries raise anything
        raise InputError(f"cannot load the weights of {name}: {in_one_line(error)}") from error
    # transformers fills missing weights with random numbers and only prints a table.
    for what in ("missing", "unexpected", "mismatched"):
        # A mismatched key comes as a tuple with its shapes.
        if keys := sorted(key if isinstance(key, str) else key[0] for key in info[f"{what}_keys"]):
            raise InputError(
                f"the weights of {name} do not fit its configuration: {len(keys)} {what}, for example {keys[0]}; "
                "give a complete checkpoint of this architecture."
            )
    clex.restore(model, source)
    return Loaded(model.eval().to(device()), tokenizer(name))


def tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer under `name`, as prompts are read: it puts nothing after a text. No weights are loaded."""
    config = architecture(name).get_text_config(decoder=True)
    return special_tokens.prepared(stock_tokenizer(name), getattr(config, "vocab_size", None))


def stock_tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer under `name`, as it is saved beside a model; no weights are loaded."""
    source, arguments = _resolve(name)
    if source == "random":
        return byte_tokenizer()
    check_config(name)
    try:
        # AutoTokenizer would parse a GGUF file a second time.
        kind = PreTrainedTokenizerFast if arguments else AutoTokenizer
        return kind.from_pretrained(source, trust_remote_code=False, **arguments, **pin(source))
    except Exception as error:  # a broken checkpoint makes the libraries raise anything
        raise InputError(f"cannot load the tokenizer of {name}: {in_one_line(error)}") from error


def provenance(name: str) -> dict:
    """What identifies a model in a record: its source, the SHA-256 of local weights, a hub repository's commit, and
    the content of its tokenizer and its configuration.

    No weights are loaded. A local checkpoint's source is the name of its directory.
    """
    hashes, commit = weights(name), _commit(_resolve(name)[0])
    named = Path(name).resolve().name if hashes else str(name)
    return {
        "source": MODELS[name].model if name in MODELS else named,
        "sha256": hashes,
        **({"revision": commit} if commit else {}),
        **_content(name),
    }


def weights(name: str) -> dict[str, str]:
    """The SHA-256 of each local file of weights."""
    every = sorted(Path(_resolve(name)[0]).glob("*"))
    return {file.name: files.sha256(file) for file in every if file.suffix in {".safetensors", ".gguf", ".bin"}}


@functools.cache
def _content(name: str) -> dict[str, str]:
    """Hashes of what the tokenizer and the configuration say, in whatever files they stand."""
    tokens = tokenizer(name)
    if tokens.is_fast:
        rules = json.loads(tokens.backend_tokenizer.to_str())
        rules = {key: value for key, value in rules.items() if key not in ("padding", "truncation")}
    else:
        rules = {"class": type(tokens).__name__, "vocabulary": tokens.get_vocab()}
    config = check_config(name).to_diff_dict()
    config = {key: value for key, value in config.items() if key not in _NO_EFFECT}
    for part in (config, *config.values()):  # a composite model has the language model's as a part
        if isinstance(part, dict) and EXTENSION in part:
            part[EXTENSION] = {key: part[EXTENSION].get(key) for key in ("context_length", "rope_theta", "factor")}
    special = {"special": tokens.special_tokens_map, "added": tokens("").input_ids}
    return {"tokenizer": records.identity(rules=rules, **special), "config": records.identity(**config)}


def extension(name: str) -> dict | None:
    """What an export states of how it was extended, checked against its RoPE; None of any other model."""
    config = check_config(name)
    return check_extension(skeleton(config)) if hasattr(text_config(config), EXTENSION) else None


# Fields of a configuration that change no number: who wrote it, and the dtype, which records state themselves.
_NO_EFFECT = ("_name_or_path", "transformers_version", "dtype", "torch_dtype", "architectures", "use_cache")


def check_access(name: str) -> None:
    """Refuse, before any work, a model on the hub that is gated and cannot be read."""
    if _is_on_hub(source := _resolve(name)[0]):
        hub.reach(source)


def pin(source: str) -> dict:
    """Extra arguments for from_pretrained: the pinned commit of a repository on the hub, if it has one."""
    is_pinned = source in hub.REVISIONS and _is_on_hub(source)
    return {"revision": hub.REVISIONS[source]} if is_pinned else {}


def _is_on_hub(source: str) -> bool:
    return source != "random" and not Path(source).is_absolute() and not Path(source).exists()


def _commit(source: str) -> str | None:
    """The commit of a repository on the hub: the pinned one, else the one of its cached configuration."""
    if not _is_on_hub(source):
        return None
    if pinned := pin(source):
        return pinned["revision"]
    check_config(source)
    cached = try_to_load_from_cache(source, "config.json")
    return Path(cached).parent.name if isinstance(cached, str) else None


def check_config(name: str) -> transformers.PreTrainedConfig:
    """The configuration under `name`; InputError if there is none or it states no context length."""
    source, arguments = _resolve(name)
    if source == "random":
        return architecture(name)
    check_access(name)
    try:
        if arguments:
            config, stated = copy.deepcopy(_gguf_config(source, **arguments)), {}
        else:
            config = AutoConfig.from_pretrained(source, trust_remote_code=False, **pin(source))
            stated = transformers.PreTrainedConfig.get_config_dict(source, **pin(source))[0]
    except Exception as error:  # a broken checkpoint makes the libraries raise anything
        raise InputError(
            f"no checkpoint at {name!r}: give a directory with config.json and weights, a name on the Hugging Face "
            f"hub, or one of {', '.join(MODELS)} ({in_one_line(error)})"
        ) from error
    # transformers would silently fill in a missing length with the class's default, so look at the file itself.
    length_key = text_config(config).attribute_map.get("max_position_embeddings", "max_position_embeddings")
    stated = stated.get("text_config") or stated
    if stated and not stated.get(length_key):
        raise InputError(
            f"{name}/config.json does not state the context length the model was pre-trained with; "
            f"add {length_key!r} to it."
        )
    return config


@functools.cache
def _gguf_config(source: str, gguf_file: str) -> transformers.PreTrainedConfig:
    """Cached, because transformers parses the whole vocabulary for it, which takes seconds."""
    return AutoConfig.from_pretrained(source, gguf_file=gguf_file)


def architecture(name: str) -> transformers.PreTrainedConfig:
    """The configuration under `name`; a known model that states its sizes needs no files and no network."""
    sizes = MODELS[name].architecture if name in MODELS else None
    return transformers.LlamaConfig(**sizes) if sizes else check_config(name)


def byte_tokenizer() -> PreTrainedTokenizerBase:
    """A tokenizer for models without their own: one token per byte and an end of text, 257 in all."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(tokenizer_models.BPE({token: i for i, token in enumerate(["</s>", *alphabet])}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", pad_token="</s>")


def geometry(name: str) -> RopeGeometry:
    """The pre-training geometry under `name`, from its configuration alone."""
    return MODELS[name].geometry if name in MODELS else config_geometry(check_config(name))


def context_length(name: str) -> int:
    """L in tokens: that of pre-training if this project can extend the model, else what its configuration states."""
    known = plain_geometry(name)
    return known.context_length if known else text_config(check_config(name)).max_position_embeddings


def plain_geometry(name: str) -> RopeGeometry | None:
    """:func:`geometry`; None if the model cannot be extended, because others scaled its RoPE or it has none."""
    check_config(name)
    try:
        return geometry(name)
    except InputError:
        return None


def most_tokens(name: str) -> int | None:
    """The tokens that a model can read: those of its context length if it has no RoPE, else as many as are asked of it.

    Positions of GPT-2's kind are learned one by one, and there are no others.
    """
    config = text_config(check_config(name))
    return None if getattr(config, "rope_parameters", None) else config.max_position_embeddings


def facts(name: str, folder: str, *factors: float) -> dict:
    """The contents of model.json for a model of one's own; of one that cannot be extended, its geometry is L alone."""
    source, plain = provenance(name), plain_geometry(name)
    return {
        "title": folder,
        "model": source["source"],
        **{key: source[key] for key in ("revision", "sha256") if key in source},
        "geometry": asdict(plain) if plain else {"context_length": context_length(name)},
        "factors": list(factors),
        "n_hat": {},
        "ablated": [],
    }


def _resolve(name: str) -> tuple[str, dict]:
    """(the first argument for from_pretrained, extra arguments)."""
    model = MODELS[name].model if name in MODELS else str(name)
    if model.startswith("repository:"):
        return str(ROOT / model.removeprefix("repository:")), {}
    if not model.startswith("package:"):
        if model.endswith(".gguf"):
            raise InputError(
                f"{model} is a GGUF file, which can be extended here (experiments.extend --model FILE.gguf --output "
                "NEW.gguf), not evaluated; give the checkpoint that it was made from."
            )
        return model, {}
    package, file = model.removeprefix("package:").split("/", 1)
    spec = importlib.util.find_spec(package)  # finds the package without importing it
    if spec is None:
        raise InputError(f"the package {package} that carries {name}'s weights is not installed; run `make env`.")
    return spec.submodule_search_locations[0], {"gguf_file": file}


# Weights in formats that are not used here.
OTHER_FORMATS = ["*.h5", "*.msgpack", "*.onnx*", "*.gguf", "*.pth", "*.ot"]


def snapshot(name: str) -> Path:
    """The repository's local directory, at the pinned commit if there is one; downloaded if needed."""
    commit = hub.REVISIONS.get(name)
    pickled = ["*.bin", "*.bin.index.json"]
    directory = Path(snapshot_download(name, revision=commit, ignore_patterns=[*OTHER_FORMATS, *pickled]))
    if not any(directory.glob("*.safetensors")):
        directory = Path(snapshot_download(name, revision=commit, ignore_patterns=OTHER_FORMATS))
    return directory
