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
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.utils import (
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    WEIGHTS_INDEX_NAME,
    WEIGHTS_NAME,
    logging,
)

from ..errors import InputError, in_one_line
from . import schema
from .configuration import check_content
from .rotation import skeleton
from .schema import REMEDY

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
    held = tensors(source)
    for file in _copied(source):
        _check_file(source / file, source)
    model = skeleton(config)
    if (
        held
        and not getattr(config, "quantization_config", None)
        and (wrong := _misfits(model, held))
    ):
        raise InputError(f"the weights in {source} do not fit its config.json ({wrong}); {REMEDY}.")
    return config, model


def read_config(source: Path) -> PreTrainedConfig:
    """The configuration of a checkpoint.

    Raises:
        InputError: there is none, it cannot be read, or it contradicts itself.
    """
    content = schema.read(source / "config.json")
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        check_content(config, content, str(source))
    except InputError:
        raise
    except Exception as error:  # libraries raise many kinds for a broken one
        raise InputError(
            f"cannot read {source}/config.json ({in_one_line(error)}); correct it."
        ) from error
    return config


def copy(source: Path, target: Path) -> None:
    """Copy a checkpoint: its weights, configuration, tokenizer, templates, licence and card, and
    nothing else.

    Args:
        target: the directory to create.

    Warns:
        UserWarning: something is left out; the sentence names it.
    """
    files = _copied(source)
    tops = {file.parts[0] for file in files}
    others = sorted(
        file.name for file in source.iterdir() if file.name not in tops and file.name[0] != "."
    )
    if others:
        names = textwrap.shorten(", ".join(others), 160, placeholder=" …")
        warnings.warn(
            f"no loader of this model needs {names}, so the export leaves that out", stacklevel=3
        )
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, target / file)


def weights(source: Path) -> dict[Path, dict[str, torch.Tensor]]:
    """The files of weights that a loader opens, in its order, and the tensors in each.

    Of a tensor that two files hold, a loader takes that of the last.

    Args:
        source: the directory of a checkpoint.

    Returns:
        the tensors by name, without their values, by the file's path below `source`. An index comes
        before its shards and holds none; pickled tensors are not read. Empty if there is no file
        that a loader opens.

    Raises:
        InputError: a file is named that does not lie below the checkpoint, cannot be read, or lacks
            a tensor that an index says it holds.
    """
    first = next((Path(name) for name in _WEIGHTS if (source / name).is_file()), None)
    if first is None:
        return {}
    if first.suffix != ".json":
        return {first: header(source / first)}
    shards = schema.read(source / first, schema.INDEX)["weight_map"]
    found: dict[Path, dict[str, torch.Tensor]] = {first: {}}
    for name in sorted(set(shards.values())):
        file = Path(name)
        outside = file.is_absolute() or ".." in file.parts
        if outside or not os.path.isfile(source / file):
            raise InputError(
                f"{first} in {source} names {in_one_line(name)} as weights, and no such file lies "
                f"below {source}; {REMEDY}."
            )
        found[file] = header(source / file)
    for tensor, name in shards.items():
        held = found[Path(name)]
        if held and tensor not in held:
            raise InputError(
                f"{source / first} names {tensor} in {name}, which does not hold it; {REMEDY}."
            )
    return found


def tensors(source: Path) -> dict[str, torch.Tensor]:
    """The tensors that a loader takes from a checkpoint, as :func:`weights` gives them; InputError
    if there are no weights but an adapter, or none."""
    if (source / "adapter_config.json").is_file():
        raise InputError(
            f"{source} holds an adapter; merge it into its base model first, and give the merged "
            f"one."
        )
    found = weights(source)
    if not found:
        raise InputError(
            f"{source} holds no weights that a loader opens ({', '.join(_WEIGHTS)}); {REMEDY}, or "
            "convert it: gather the shards of a training run, rename a single file."
        )
    return {name: tensor for held in found.values() for name, tensor in held.items()}


def _copied(source: Path) -> list[Path]:
    """The files that an export has of a checkpoint, relative to it."""
    found = {file for pattern in _KEPT for file in source.glob(pattern)}
    kept = [file for file in found if file.is_file() and file.name[0] != "."]
    return [*weights(source), *sorted(file.relative_to(source) for file in kept)]


def _check_file(file: Path, source: Path) -> None:
    """Raise InputError if a file to copy cannot be read, is a link to somewhere else, or a JSON
    file that holds none."""
    target = file.resolve()
    homes = [source.resolve()]
    if homes[0].parent.name == "snapshots":  # of the hub's cache, where they are links to blobs
        homes.append(homes[0].parent.parent / "blobs")
    if not any(target.is_relative_to(home) for home in homes):
        raise InputError(
            f"{file} is a link to {target}, outside the checkpoint; put the file itself there."
        )
    if file.suffix == ".json":
        schema.read(file)


def header(file: Path) -> dict[str, torch.Tensor]:
    """The tensors in one file, as :func:`weights` gives them; InputError if it cannot be read."""
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
