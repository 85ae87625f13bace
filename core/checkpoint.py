"""The files of a checkpoint: copied or linked as they are, and a model without weights to work on its configuration."""

from __future__ import annotations

import copy as copies
import json
import os
from pathlib import Path

import torch
from tqdm import tqdm
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from . import clex, files
from .configuration import text_config
from .embedding import rotary_modules
from .errors import InputError

WEIGHTS = {".safetensors", ".bin", ".pt", ".pth"}
_COPIED_AT_ONCE = 2**24  # bytes


def read_config(source: Path) -> PreTrainedConfig:
    """The configuration of a complete checkpoint.

    Raises:
        InputError: no directory, no readable configuration, no context length in it, or weights that are not there.
    """
    if not (source / "config.json").is_file():
        raise InputError(f"{source} holds no config.json; give the directory of a Hugging Face checkpoint.")
    stated = files.read_json(source / "config.json", "give the directory of a Hugging Face checkpoint")
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # libraries raise many kinds for a broken one
        raise InputError(f"cannot read {source}/config.json ({_one_line(error)}); mend it.") from error
    # A missing length would silently become the class's default, so look at what the file itself says.
    length = config.attribute_map.get("max_position_embeddings", "max_position_embeddings")
    if not (stated.get("text_config") or stated).get(length):
        raise InputError(
            f"{source}/config.json does not state the context length the model was pre-trained with; "
            f"add {length!r} to it."
        )
    if missing := _missing_weights(source):
        raise InputError(f"{source} holds no {missing}; give a complete checkpoint, with its weights.")
    return config


def skeleton(config: PreTrainedConfig) -> PreTrainedModel:
    """The model of a configuration, with its rotary embeddings and without memory for its weights.

    Raises:
        InputError: a configuration that no causal language model can be built from.
    """
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(copies.deepcopy(config), trust_remote_code=False)
        for parent, name, rotary in rotary_modules(model):
            setattr(parent, name, type(rotary)(text_config(model.config)))
    except InputError:
        raise
    except Exception as error:  # whatever a configuration's contradictions make the model's class raise
        raise InputError(
            f"no causal language model can be built from this {config.model_type!r} configuration "
            f"({_one_line(error)}); mend it."
        ) from error
    return model


def copy(source: Path, target: Path, link: bool = False, progress: bool = False) -> None:
    """Copy every file of a checkpoint; hidden directories and the weights of another extension (CLEX) stay behind.

    Args:
        target: a directory that is made.
        link: weights become hard links.
        progress: show a bar, by bytes.

    Raises:
        InputError: links that the file system cannot make.
    """
    found = [file for file in sorted(source.rglob("*")) if file.is_file() and _comes_along(file.relative_to(source))]
    total = sum(file.stat().st_size for file in found)
    with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, disable=not progress) as bar:
        for file in found:
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            if link and file.suffix in WEIGHTS:
                _link(file, place)
                bar.update(place.stat().st_size)
                continue
            with open(file, "rb") as read, open(place, "wb") as write:
                while block := read.read(_COPIED_AT_ONCE):
                    write.write(block)
                    bar.update(len(block))


def _link(file: Path, place: Path) -> None:
    try:
        os.link(file.resolve(), place)  # in the hub's cache the files are symbolic links
    except OSError as error:
        raise InputError(
            f"cannot link {file.name} ({error.strerror}); give a directory on the file system of the checkpoint, "
            "or copy instead."
        ) from error


def _comes_along(file: Path) -> bool:
    return file.name != clex.FILE and not any(part.startswith(".") for part in file.parts[:-1])


def _missing_weights(source: Path) -> str | None:
    """The name of a file of weights that is not there, or what is missing altogether."""
    if not any(file.suffix in WEIGHTS and file.name != clex.FILE for file in source.iterdir()):
        return "weights"
    for index in sorted(source.glob("*.index.json"))[:1]:  # safetensors' before pickled weights'
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise InputError(f"cannot read {index} ({error}); give a complete checkpoint.") from error
        if absent := sorted(shard for shard in shards if not (source / shard).is_file()):
            return absent[0]
    return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
