"""Apply a RoPE scaling to a loaded Hugging Face model, and export it as a stock checkpoint."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import torch
from transformers import AutoConfig, PreTrainedModel

from core import clex
from core.embedding import apply_scaling, rope_geometry, rotary_modules, text_config
from core.errors import InputError
from core.rope import scale


def extend(model: PreTrainedModel, method: str, factor: float, **options) -> PreTrainedModel:
    """Scale the model's RoPE by `method` for a context `factor` times as long, in place.

    A model that was extended before starts again from its pre-training geometry. The inverse frequencies stay
    float32 whatever the model is cast to afterwards.

    Args:
        model: a causal language model with a stock rotary embedding (Llama, Mistral, Qwen, GPT-NeoX, …).
        method, factor, options: see :func:`core.rope.scale`.

    Returns:
        the same model; its rotary embedding and configuration changed.

    Raises:
        InputError: no rotary embedding, one that is scaled already, no context length, or a bad option.
    """
    geometry = rope_geometry(model)
    scaling = scale(geometry, method, factor, **options)
    clex.remove(model)
    if scaling.install:
        return scaling.install(model, geometry, factor)
    return apply_scaling(model, geometry, scaling, factor)


def export(model: PreTrainedModel, directory: str | os.PathLike, tokenizer=None) -> Path:
    """Write a checkpoint that plain ``AutoModelForCausalLM.from_pretrained`` loads, with identical logits.

    Of a CLEX model that is the fixed scale of its context length; the trained ODE lies beside it, for
    :func:`core.clex.restore`.

    Written beside its final place and renamed, so that an interrupted export leaves nothing under `directory`.

    Args:
        model: a model, extended or not.
        directory: must not exist.
        tokenizer: saved alongside, its maximum length set to the model's.

    Raises:
        InputError: the directory exists.
    """
    directory = Path(directory)
    check_new_directory(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        with clex.fixed(model):
            model.save_pretrained(partial)
            _verify_config(model, partial)
        if clex.is_installed(model):
            clex.save(model, partial)
        if tokenizer is not None:
            tokenizer.model_max_length = text_config(model.config).max_position_embeddings
            tokenizer.save_pretrained(partial)
        partial.chmod(0o755)  # mkdtemp's directories are private
        partial.rename(directory)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return directory


def check_new_directory(directory: str | os.PathLike) -> None:
    """Raise InputError if `directory` exists."""
    if Path(directory).exists():
        raise InputError(f"{directory} exists already; give a new directory, or remove it first.")


def _verify_config(model: PreTrainedModel, directory: Path) -> None:
    """Fail now rather than at the user's next load: the written configuration must rebuild the same embedding."""
    config = text_config(AutoConfig.from_pretrained(directory))
    for _, _, rotary in rotary_modules(model):
        rebuilt = type(rotary)(config)
        for name, buffer in rotary.named_buffers(recurse=False):
            if not torch.equal(buffer.cpu().float(), rebuilt.get_buffer(name).float()):
                raise RuntimeError(f"the exported configuration does not reproduce {type(rotary).__name__}.{name}")
