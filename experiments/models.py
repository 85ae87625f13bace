"""Load a model to experiment on: a preset scale, a local checkpoint or a hub name."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
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

from core import clex
from core.embedding import config_geometry
from core.errors import InputError
from core.rope import RopeGeometry
from experiments.records import ROOT, file_sha256
from experiments.scales import SCALES

if not torch.cuda.is_available():  # else DeepSpeed, which transformers imports when saving, warns of its own guess
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
# transformers warns that `short_mscale` is not one of its own keys each time an extended model is loaded.
transformers.logging.set_verbosity_error()


@dataclass
class Loaded:
    """A model and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def device() -> str:
    """The accelerator when there is one, else the CPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def attention(dtype: str) -> str | None:
    """FlashAttention-2 where it is installed, there is a GPU and the dtype is one of its two; else transformers'
    default, which is SDPA for every model that has it."""
    usable = transformers.utils.is_flash_attn_2_available() and dtype in ("bfloat16", "float16")
    return "flash_attention_2" if usable else None


def load(name: str, dtype: str = "float32") -> Loaded:
    """Load a causal language model by scale, path or hub name, in evaluation mode on the best device.

    Raises:
        InputError: nothing loadable under that name, or a configuration without a context length.
    """
    source, arguments = _resolve(name)
    config = check_config(name)
    if source == "random":
        torch.manual_seed(0)
        # Not from_config: under ZeRO-3 that would draw other weights.
        model = transformers.LlamaForCausalLM(config).to(getattr(torch, dtype))
        return Loaded(model.eval().to(device()), byte_tokenizer())
    try:
        if "gguf_file" in arguments:  # unpack the quantised blocks into a plain dense model
            quantization = {"quantization_config": transformers.GgufConfig(dequantize=True)}
        else:
            quantization = {}
        model = AutoModelForCausalLM.from_pretrained(
            source,
            dtype=getattr(torch, dtype),
            attn_implementation=attention(dtype),
            **arguments,
            **quantization,
        )
    except (OSError, ValueError) as error:
        raise InputError(f"cannot load the weights of {name}: {_first_line(error)}") from error
    clex.restore(model, source)
    return Loaded(model.eval().to(device()), tokenizer(name))


def tokenizer(name: str) -> PreTrainedTokenizerBase:
    """The tokenizer under `name`, without its weights."""
    source, arguments = _resolve(name)
    if source == "random":
        return byte_tokenizer()
    check_config(name)
    try:
        return AutoTokenizer.from_pretrained(source, **arguments)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot load the tokenizer of {name}: {_first_line(error)}") from error


def provenance(name: str) -> dict:
    """What identifies the weights in a record; needs no loading. Of a local checkpoint, its directory's own name."""
    source, _ = _resolve(name)
    files = sorted(p for p in Path(source).glob("*") if p.suffix in {".safetensors", ".gguf", ".bin"})
    named = Path(name).resolve().name if files else str(name)
    return {
        "source": SCALES[name].model if name in SCALES else named,
        "sha256": {file.name: file_sha256(file) for file in files},
    }


def check_config(name: str) -> transformers.PreTrainedConfig:
    """The configuration under `name`, without its weights; InputError if there is none or it states no length."""
    source, arguments = _resolve(name)
    if source == "random":
        return architecture(name)
    try:
        config = AutoConfig.from_pretrained(source, **arguments)
        stated = {} if arguments else transformers.PreTrainedConfig.get_config_dict(source)[0]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"no checkpoint at {name!r}: give a directory with config.json and weights, a name on the Hugging Face "
            f"hub, or one of {', '.join(SCALES)} ({_first_line(error)})"
        ) from error
    # A missing length would silently become the class's default, so look at what the file itself says.
    length_key = config.attribute_map.get("max_position_embeddings", "max_position_embeddings")
    stated = stated.get("text_config") or stated
    if stated and not stated.get(length_key):
        raise InputError(
            f"{name}/config.json does not state the context length the model was pre-trained with; "
            f"add {length_key!r} to it."
        )
    return config


def architecture(name: str) -> transformers.PreTrainedConfig:
    """The configuration under `name`; of a scale that states its sizes, without looking anywhere else."""
    sizes = SCALES[name].architecture if name in SCALES else None
    return transformers.LlamaConfig(**sizes) if sizes else check_config(name)


def byte_tokenizer() -> PreTrainedTokenizerBase:
    """One token per byte and an end of text, for models that have no tokenizer of their own: 257 tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(tokenizer_models.BPE({token: i for i, token in enumerate(["</s>", *alphabet])}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", pad_token="</s>")


def geometry(name: str) -> RopeGeometry:
    """The pre-training geometry under `name`, from its configuration alone."""
    return SCALES[name].geometry if name in SCALES else config_geometry(check_config(name))


def _resolve(name: str) -> tuple[str, dict]:
    """(what to hand to from_pretrained, its extra arguments)."""
    model = SCALES[name].model if name in SCALES else str(name)
    if model.startswith("repository:"):
        return str(ROOT / model.removeprefix("repository:")), {}
    if not model.startswith("package:"):
        return model, {}
    package, file = model.removeprefix("package:").split("/", 1)
    spec = importlib.util.find_spec(package)  # finds the package without importing it or what it needs
    if spec is None:
        raise InputError(f"the package {package} that carries {name}'s weights is not installed; run `make env`.")
    return spec.submodule_search_locations[0], {"gguf_file": file}


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
