"""The files of a checkpoint: those that a loader opens, whether they fit the configuration, copying
them."""

from __future__ import annotations

import copy as copying
import os
import shutil
import textwrap
import warnings
import zipfile
from pathlib import Path

import accelerate  # noqa: F401  (without it, from_pretrained builds no model on the meta device)
import safetensors
import torch
import transformers
from tqdm import tqdm
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.utils import (
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    WEIGHTS_INDEX_NAME,
    WEIGHTS_NAME,
    logging,
)

from .. import files
from ..errors import InputError, in_one_line
from .configuration import check_content
from .rotation import skeleton

# What from_pretrained looks for, in its order.
_WEIGHTS = (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_NAME, WEIGHTS_INDEX_NAME)
# What an export keeps beside the weights: no code, and no second description of the model.
_KEPT = (
    "config.json",
    "generation_config.json",
    "README.md",
    "README.base.md",
    "LICEN[CS]E*",
    "NOTICE*",
    "COPYING*",
    "USE_POLICY*",
    "tokenizer*.json",
    "tokenizer*.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.tiktoken",
    "tekken.json",
    "spiece.model",
    "sentencepiece*.model",
    "chat_template.j*",
    "additional_chat_templates/*.jinja",
    "*processor_config.json",
)
# how torch.save's files begin that are no zip archives
_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_REMEDY = "give a complete checkpoint, as save_pretrained writes it"


def read(source: Path) -> tuple[PreTrainedConfig, PreTrainedModel]:
    """The configuration of a checkpoint and its model without weights, after checking all that
    would be copied.

    The weights are those that ``from_pretrained`` would open. Their names and shapes come from the
    headers of safetensors files and must fill the model; pickled and quantised ones are only
    checked to be whole.

    Raises:
        InputError: the directory, a readable configuration or its context length is missing, the
            model's class is code of the checkpoint's own, or the weights are incomplete, another
            model's, or only an adapter.
    """
    config = read_config(source)
    if getattr(config, "auto_map", None) and not hasattr(
        transformers, next(iter(config.architectures or ()), "")
    ):
        raise InputError(
            f"{source}/config.json names code of its own (auto_map), which need not read the keys "
            f"of a scaled RoPE; "
            "give a checkpoint of a class that transformers has."
        )
    for file in (*_weights(source, config), *_kept(source)):
        _check_file(file, source)
    model, held = skeleton(config), tensors(source, config)
    if (
        held
        and not getattr(config, "quantization_config", None)
        and (wrong := _misfits(model, held))
    ):
        raise InputError(
            f"the weights in {source} do not fit its config.json ({wrong}); {_REMEDY}."
        )
    return config, model


def read_config(source: Path) -> PreTrainedConfig:
    """The configuration of a checkpoint.

    Raises:
        InputError: there is none, it cannot be read, or it contradicts itself.
    """
    if not (source / "config.json").is_file():
        raise InputError(
            f"{source} holds no config.json; give the directory of a Hugging Face checkpoint."
        )
    content = files.read_json(
        source / "config.json", "give the directory of a Hugging Face checkpoint"
    )
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # libraries raise many kinds for a broken one
        raise InputError(
            f"cannot read {source}/config.json ({in_one_line(error)}); correct it."
        ) from error
    check_content(config, content, str(source))
    return config


def copy(source: Path, target: Path, config: PreTrainedConfig) -> None:
    """Copy a checkpoint: its weights, configuration, tokenizer, templates, licence and card, and
    nothing else.

    A progress bar in bytes shows on a terminal.

    Args:
        target: the directory to create.
        config: the checkpoint's.

    Warns:
        UserWarning: something is left out; the sentence names it.
    """
    every = (*_weights(source, config), *_kept(source))
    sizes = {file.relative_to(source): file.stat().st_size for file in every}
    tops = {file.parts[0] for file in sizes}
    others = sorted(
        file.name for file in source.iterdir() if file.name not in tops and file.name[0] != "."
    )
    if others:
        names = textwrap.shorten(", ".join(others), 160, placeholder=" …")
        warnings.warn(
            f"no loader of this model needs {names}, so the export leaves that out", stacklevel=3
        )
    with tqdm(
        total=sum(sizes.values()), unit="B", unit_scale=True, unit_divisor=1024, disable=None
    ) as bar:
        for file, size in sizes.items():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / file, target / file)
            bar.update(size)


def _weights(source: Path, config: PreTrainedConfig) -> list[Path]:
    """The files of weights that a loader opens; of several, their index is the first."""
    if (source / "adapter_config.json").is_file():
        raise InputError(
            f"{source} holds an adapter; merge it into its base model first, and give the merged "
            f"one."
        )
    named = getattr(config, "transformers_weights", None)
    names = (named,) if named else _WEIGHTS
    first = next((source / name for name in names if (source / name).is_file()), None)
    if first is None:
        raise InputError(
            f"{source} holds no weights that a loader opens ({', '.join(names)}); {_REMEDY}, or "
            f"convert it: gather the "
            "shards of a training run, rename a single file."
        )
    shards = sorted(set(_map(first).values())) if first.suffix == ".json" else []
    return [first, *(source / name for name in shards)]


def _map(index: Path) -> dict[str, str]:
    """The file of each tensor that an index names."""
    shards = files.read_json(index, _REMEDY).get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
        raise InputError(f"{index} has no weight_map from tensors to files; {_REMEDY}.")
    return shards


def _kept(source: Path) -> list[Path]:
    """What is copied beside the weights."""
    paths = {file for pattern in _KEPT for file in source.glob(pattern)}
    return sorted(file for file in paths if file.is_file() and not file.name.startswith("."))


def _check_file(file: Path, source: Path) -> None:
    """Raise InputError if a file to copy is missing, a link to somewhere else, or a JSON file that
    holds none."""
    target, home = file.resolve(), source.resolve()
    if not (
        target.is_relative_to(home) or target.is_relative_to(home.parent.parent / "blobs")
    ):  # the hub's cache
        raise InputError(
            f"{file} is a link to {target}, outside the checkpoint; put the file itself there."
        )
    if file.suffix == ".json":
        files.read_json(file, _REMEDY, (dict, list))
    if not os.access(file, os.R_OK):
        raise InputError(f"cannot read {file}; {_REMEDY}.")


def tensors(source: Path, config: PreTrainedConfig) -> dict[str, torch.Tensor]:
    """The tensors in a checkpoint's files by name, without their values; none of pickled ones,
    which are not read."""
    first, *shards = _weights(source, config)
    headers = {file.name: header(file) for file in shards or [first]}
    for name, shard in (_map(first) if shards else {}).items():
        if headers[shard] and name not in headers[shard]:
            raise InputError(f"{first} names {name} in {shard}, which does not hold it; {_REMEDY}.")
    return {name: tensor for found in headers.values() for name, tensor in found.items()}


def header(file: Path) -> dict[str, torch.Tensor]:
    """The tensors in one file, as :func:`tensors` gives them; InputError if it cannot be read."""
    try:
        if file.suffix == ".safetensors":
            with safetensors.safe_open(file, "pt") as opened:
                names = opened.keys()
                return {
                    name: torch.empty(opened.get_slice(name).get_shape(), device="meta")
                    for name in names
                }
        with file.open("rb") as handle:
            if handle.read(len(_BEFORE_ZIP)) == _BEFORE_ZIP:
                return {}
        with zipfile.ZipFile(file) as archive:
            if not any(name.endswith("data.pkl") for name in archive.namelist()):
                raise zipfile.BadZipFile("it holds no data.pkl")
    except (OSError, safetensors.SafetensorError, zipfile.BadZipFile) as error:
        raise InputError(
            f"cannot read {file} as weights ({in_one_line(error)}); get the whole file (`git lfs "
            f"pull`, if it is a "
            "pointer of Git LFS)."
        ) from error
    return {}


def _misfits(model: PreTrainedModel, tensors: dict[str, torch.Tensor]) -> str | None:
    """What transformers, which knows older names of weights, cannot fill of a model with these
    tensors; or None."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        _, info = type(model).from_pretrained(
            None,
            config=copying.deepcopy(model.config),
            state_dict=tensors,
            device_map={"": "meta"},
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except Exception as error:  # a conversion of names may raise anything
        return in_one_line(error)
    finally:
        if shown:
            logging.enable_progress_bar()
    return misfit(info, "missing", "mismatched")


def misfit(info: dict, *kinds: str) -> str | None:
    """The first of these kinds of keys ("missing", …) in the loading info of ``from_pretrained``,
    in words; or None."""
    for kind in kinds:  # a mismatched key comes as a tuple with its shapes
        if keys := sorted(key if isinstance(key, str) else key[0] for key in info[f"{kind}_keys"]):
            return f"{len(keys)} {kind}, for example {keys[0]}"
    return None
