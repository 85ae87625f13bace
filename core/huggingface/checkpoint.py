"""The files of a checkpoint: whether they are all there and can be read, copying or linking them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import safetensors
from tqdm import tqdm
from transformers import AutoConfig, PreTrainedConfig

from .. import clex, files
from ..errors import InputError, in_one_line

WEIGHTS = {".safetensors", ".bin", ".pt", ".pth"}


def read_config(source: Path) -> PreTrainedConfig:
    """The configuration of a checkpoint, after checking that the checkpoint is complete.

    Raises:
        InputError: the directory, a readable configuration, its context length, or a file of weights is missing.
    """
    if not (source / "config.json").is_file():
        raise InputError(f"{source} holds no config.json; give the directory of a Hugging Face checkpoint.")
    content = files.read_json(source / "config.json", "give the directory of a Hugging Face checkpoint")
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # libraries raise many kinds for a broken one
        raise InputError(f"cannot read {source}/config.json ({in_one_line(error)}); correct it.") from error
    # transformers would silently fill in a missing length with the class's default, so look at the file itself.
    length = config.attribute_map.get("max_position_embeddings", "max_position_embeddings")
    if not (content.get("text_config") or content).get(length):
        raise InputError(
            f"{source}/config.json does not state the context length the model was pre-trained with; "
            f"add {length!r} to it."
        )
    if missing := _missing_weights(source):
        raise InputError(f"{source} holds no {missing}; give a complete checkpoint, with its weights.")
    _check_readable(source)
    return config


def copy(source: Path, target: Path, link: bool = False, progress: bool = False) -> None:
    """Copy every file of a checkpoint, except hidden directories and the CLEX weights of an earlier extension.

    Args:
        target: the directory to create.
        link: hard-link the weights instead of copying them.
        progress: show a progress bar, in bytes.

    Raises:
        InputError: the file system cannot make the links.
    """
    sizes = {}
    for file in sorted(source.rglob("*")):
        relative = file.relative_to(source)
        hidden = any(folder.startswith(".") for folder in relative.parts[:-1])
        if file.is_file() and not hidden and file.name != clex.FILE:
            sizes[relative] = file.stat().st_size
    with tqdm(total=sum(sizes.values()), unit="B", unit_scale=True, unit_divisor=1024, disable=not progress) as bar:
        for file, size in sizes.items():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            if link and file.suffix in WEIGHTS:
                _link(source / file, target / file)
            else:
                shutil.copyfile(source / file, target / file)
            bar.update(size)


def _link(file: Path, target: Path) -> None:
    try:
        os.link(file.resolve(), target)  # resolve: files in the hub's cache are symbolic links
    except OSError as error:
        raise InputError(
            f"cannot link {file.name} ({error.strerror}); give a directory on the checkpoint's file system, "
            "or copy without links."
        ) from error


def _missing_weights(source: Path) -> str | None:
    """The name of a missing file of weights, "weights" if there are none at all, or None."""
    if not any(file.suffix in WEIGHTS and file.name != clex.FILE for file in source.iterdir()):
        return "weights"
    for index in sorted(source.glob("*.index.json"))[:1]:  # the sort puts safetensors before pickled weights
        shards = files.read_json(index, "give a complete checkpoint").get("weight_map")
        if not isinstance(shards, dict):
            raise InputError(f"{index} has no weight_map; give a complete checkpoint.")
        if absent := sorted(shard for shard in set(shards.values()) if not (source / shard).is_file()):
            return absent[0]
    return None


def _check_readable(source: Path) -> None:
    """Open every file of a checkpoint, before hours of copying.

    Raises:
        InputError: a file cannot be opened, a file of weights is cut short, or a JSON file is none.
    """
    for file in sorted(source.iterdir()):
        if not file.is_file():
            continue
        if file.suffix == ".json":
            files.read_json(file, "give a complete checkpoint", (dict, list))
        try:
            if file.suffix == ".safetensors":
                safetensors.safe_open(file, "pt").keys()
            with open(file, "rb") as handle:
                if file.suffix in WEIGHTS and not handle.read(1):
                    raise InputError(f"{file} is empty; give a complete checkpoint.")
        except (OSError, safetensors.SafetensorError) as error:
            raise InputError(f"cannot read {file} ({in_one_line(error)}); give a complete checkpoint.") from error
