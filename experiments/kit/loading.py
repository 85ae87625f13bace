"""What a checkpoint's files hold: its configuration, its tokenizer, what ends its answers, and its
weights. What does not fit together is refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from core import clex
from core.errors import InputError, in_one_line
from core.huggingface import attention as less_memory
from core.huggingface.checkpoint import check_fit, check_weights, misfit, read_config
from core.huggingface.configuration import text_config
from core.huggingface.rotation import skeleton
from eval.generation import model_stops
from experiments.kit.processes import device
from experiments.kit.source import Source

# DeepSpeed, which transformers imports when saving, would warn about its own guess.
if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
# transformers would warn, on each load of an extended model, that it does not know the key
# `short_mscale`.
transformers.logging.set_verbosity_error()
transformers.AttentionInterface.register("sdpa", less_memory.sdpa)  # the same, with less memory


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
    if not source.on_hub:  # of the hub's, files may still be missing here
        check_fit(directory, skeleton(config, rotates=False))
    return config


def stops(source: Source, config: PreTrainedConfig) -> frozenset[int]:
    """The ids that end an answer: those of generation_config.json, if there is one, else those of
    the configuration."""
    stated = source.json("generation_config.json")
    if stated is None:
        return model_stops(GenerationConfig.from_model_config(config))
    return model_stops(GenerationConfig(eos_token_id=stated.get("eos_token_id")))


def stock_tokenizer(source: Source) -> PreTrainedTokenizerBase:
    """The tokenizer, as it is saved beside a model."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        source.json(name)
    try:
        if source.gguf_file:  # AutoTokenizer would parse the file a second time
            return PreTrainedTokenizerFast.from_pretrained(source.place, gguf_file=source.gguf_file)
        return AutoTokenizer.from_pretrained(source.place, trust_remote_code=False, **source.pin)
    except Exception as error:  # a broken checkpoint makes the libraries raise anything
        reason = in_one_line(error)
        raise InputError(f"cannot load the tokenizer of {source.name}: {reason}") from error


def load(source: Source, config: PreTrainedConfig, dtype: str) -> PreTrainedModel:
    """The model, in evaluation mode, on a GPU if there is one.

    Args:
        config: its configuration, with which the weights must fit.

    Raises:
        InputError: it cannot be loaded.
    """
    arguments = source.pin
    if source.gguf_file:  # unpack the quantised blocks into a plain dense model
        unpacked = transformers.GgufConfig(dequantize=True)
        arguments = {
            "gguf_file": source.gguf_file,
            "quantization_config": unpacked,
            "config": config,
        }
    elif not source.on_hub:
        check_weights(Path(source.place))
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            source.place,
            dtype=getattr(torch, dtype),
            trust_remote_code=False,
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
    clex.restore(model, source.place)
    return model.eval().to(device())
