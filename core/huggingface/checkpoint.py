"""The files of a checkpoint: those that a loader opens, whether they fit the configuration, copying
them."""

import copy as copying
import logging as logs
import os
import shutil
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import accelerate  # noqa: F401  (without it, from_pretrained builds no model on the meta device)
import safetensors
import torch
import transformers
from torch import nn
from transformers import (
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.integrations import deepspeed
from transformers.modeling_utils import load_state_dict, remove_tied_weights_from_state_dict
from transformers.utils import (
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    WEIGHTS_INDEX_NAME,
    WEIGHTS_NAME,
    logging,
)

from .. import TRAINING_FILE, TRAINING_OF_BASE
from ..errors import InputError, in_one_line
from . import schema
from .configuration import check_section, rope_parts, text_config
from .rotation import skeleton
from .schema import REMEDY

# What from_pretrained looks for, in its order.
_WEIGHTS = (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_NAME, WEIGHTS_INDEX_NAME)
# What an export keeps beside the weights: no code, and no second description of the model.
_KEPT = (
    "config.json",
    "generation_config.json",
    TRAINING_FILE,
    TRAINING_OF_BASE,
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
_GET_WHOLE = "get the whole file (`git lfs pull`, if it is a pointer of Git LFS)"


def read(source: Path) -> tuple[PreTrainedConfig, PreTrainedModel]:
    """The configuration of a checkpoint and its model without weights, after checking all that
    would be copied.

    The weights are those that ``from_pretrained`` would open; :func:`check_fit` looks at them.

    Warns:
        UserWarning: they are quantised, and whether they fit only their loader knows.

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
    check_weights(source)
    for file in _copied(source):
        _check_file(source / file, source)
    _check_loads(source)
    model = skeleton(config)
    check_fit(source, model)
    if getattr(config, "quantization_config", None):
        warnings.warn(
            f"the weights in {source} are quantised, so whether all of them are there and fit is "
            "not looked at; their own loader tells, when it loads the export",
            stacklevel=3,
        )
    return config, model


def _check_loads(source: Path) -> None:
    """Refuse a tokenizer and defaults of generation that transformers cannot load."""
    for name, reader in (
        ("tokenizer_config.json", AutoTokenizer),
        ("generation_config.json", GenerationConfig),
    ):
        # Code of a tokenizer's own is not run, and a package that it needs may be missing here.
        if not (source / name).is_file() or "auto_map" in schema.read(source / name):
            continue
        try:
            reader.from_pretrained(source)
        except ImportError:
            continue
        except Exception as error:  # a broken file makes the libraries raise anything
            raise InputError(
                f"transformers cannot load what {source}/{name} describes ({in_one_line(error)}); "
                f"{REMEDY}."
            ) from error


def check_fit(source: Path, model: PreTrainedModel) -> None:
    """Refuse a checkpoint whose weights are not those that the class of a model has by its
    configuration.

    Names and shapes are read, and the values of what is tied and stands in the files twice. Of
    quantised weights only their loader knows the names: nothing is missing or unexpected of them.

    Args:
        source: the directory of the checkpoint; if it has no weights, nothing is refused.
        model: built from its configuration.

    Raises:
        InputError: weights are missing, unexpected or of another shape; or the configuration ties
            two that differ.
    """
    found = weights(source)
    homes = {name: source / file for file, tensors in found.items() for name in tensors}
    held = {name: tensor for tensors in found.values() for name, tensor in tensors.items()}
    # A file is mapped into memory rather than read.
    if found and (wrong := unfit(model, held, lambda name: load_state_dict(homes[name])[name])):
        raise InputError(f"the weights in {source} do not fit its config.json ({wrong}); {REMEDY}.")


def check_held(model: PreTrainedModel) -> None:
    """As :func:`check_fit`, of a model in memory and what would be written of it."""
    config = copying.copy(model.config)
    config.architectures = [type(model).__name__]
    try:
        held = remove_tied_weights_from_state_dict(model.state_dict(), model)
    except RuntimeError as error:  # two are one, which the class does not tie
        raise InputError(
            f"{type(model).__name__} is not what its configuration describes "
            f"({in_one_line(error)}), which a load would lose; give each its own weights."
        ) from error
    described = skeleton(config, rotates=False)
    if wrong := _edited(model, described):
        raise InputError(
            f"{type(model).__name__} computes otherwise than its configuration says ({wrong}), "
            "which a load would follow; put back what was changed, or load the model with it."
        )
    without = {name: tensor.to("meta") for name, tensor in held.items()}
    if wrong := unfit(described, without, lambda name: held[name].cpu()):
        raise InputError(
            f"{type(model).__name__} is not what its configuration describes ({wrong}), which a "
            "load would lose; merge an adapter first (merge_and_unload), and tie or resize "
            "weights in the configuration too."
        )


def _edited(model: PreTrainedModel, described: PreTrainedModel) -> str | None:
    """In words, an activation or a number such as a norm's ε by which a model does not compute as
    one built from its configuration would; or None.

    Shapes are left to :func:`unfit`, and RoPE to :mod:`.embedding`.
    """
    held = dict(model.named_modules())
    for name, module in described.named_modules():
        stated = _computes_by(module)
        present = _computes_by(held.get(name, module))
        for key, value in stated.items():
            if key in present and present[key] != value:
                return f"{name}: {key} {value} is stated, and it has {present[key]}"
    return None


def _computes_by(module: nn.Module) -> dict[str, float | str]:
    """What a module computes by beside its tensors: its numbers, and its class where it has no
    tensors, as an activation."""
    unused = ("dropout", "attention_scaling")  # of training, of RoPE
    numbers: dict[str, float | str] = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, float) and not key.endswith(unused)
    }
    parts = (*module.children(), *module.parameters(), *module.buffers())
    return numbers if parts else {"class": type(module).__name__}


def read_config(source: Path) -> PreTrainedConfig:
    """The configuration of a checkpoint.

    Raises:
        InputError: there is none, it cannot be read, or it contradicts itself.
    """
    content = schema.read(source / "config.json")
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        section = content.get("text_config") or content
        check_section(config, section, source)
        _check_rotated(config, section, source)
    except InputError:
        raise
    except Exception as error:  # libraries raise many kinds for a broken one
        raise InputError(
            f"cannot read {source}/config.json ({in_one_line(error)}); correct it."
        ) from error
    return config


def _check_rotated(config: PreTrainedConfig, section: dict, source: Path) -> None:
    """Refuse a config.json that states another number of rotated dimensions of a head than its
    class turns: other programs turn as many as it states, under any of the names that they read."""
    text = text_config(config)
    parts = [section, *_turned(section)]
    shares = {
        key: part[key] for part in parts for key in schema.SHARES if part.get(key) is not None
    }
    stated = {"rotary_dim": section["rotary_dim"]} if section.get("rotary_dim") else {}
    if not getattr(text, "rope_parameters", None) or not (shares or stated):
        return
    if shares:
        head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        stated |= {key: int(head_dim * share) for key, share in shares.items()}
    plain = copying.deepcopy(config)
    for part in _turned(vars(text_config(plain))):
        part["rope_type"] = "default"  # others turn as stated, also where the class does not
    buffers = skeleton(plain, rotates=False).get_decoder().named_buffers()
    turned = {2 * buffer.numel() for name, buffer in buffers if name.endswith("inv_freq")}
    for key, wanted in stated.items():
        if turned and wanted + wanted % 2 not in turned:
            raise InputError(
                f"{source}/config.json states {wanted} rotated dimensions of a head ({key}), and "
                f"the class of a {config.model_type!r} model turns {max(turned)}; other programs "
                "turn as stated, so give another model."
            )


def _turned(section: dict) -> list[dict]:
    """The RoPE parameters in a part of a config.json; none of a type that turns all and lets some
    stand still."""
    return [part for _, part in rope_parts(section) if part.get("rope_type") != "proportional"]


def copy(source: Path, target: Path) -> None:
    """Copy a checkpoint: its weights, configuration, tokenizer, templates, licence and card, and
    what a fine-tune read, by another name; nothing else.

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
        name = TRAINING_OF_BASE if str(file) == TRAINING_FILE else file
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, target / name)


def weights(source: Path) -> dict[Path, dict[str, torch.Tensor]]:
    """The files of weights that a loader opens, in its order, and the tensors in each.

    Of a tensor that two files hold, a loader takes that of the last.

    Args:
        source: the directory of a checkpoint.

    Returns:
        the tensors by name, without their values, by the file's path below `source`. An index comes
        before its shards and holds none. Empty if there is no file that a loader opens.

    Raises:
        InputError: a file is named that does not lie below the checkpoint, cannot be read, or lacks
            a tensor that an index says it holds.
    """
    first = next((Path(name) for name in _WEIGHTS if (source / name).is_file()), None)
    if first is None:
        return {}
    if first.suffix != ".json":
        return {first: header(source / first)}
    shards = schema.read(source / first)["weight_map"]
    found: dict[Path, dict[str, torch.Tensor]] = {first: {}}
    for name in sorted(set(shards.values())):
        file = Path(name)
        if file.is_absolute() or ".." in file.parts or not os.path.isfile(source / file):
            raise InputError(
                f"{first} in {source} names {in_one_line(name)} as weights, and no such file lies "
                f"below {source}; {REMEDY}."
            )
        found[file] = header(source / file)
    for tensor, name in shards.items():
        if tensor not in found[Path(name)]:
            raise InputError(
                f"{source / first} names {tensor} in {name}, which does not hold it; {REMEDY}."
            )
    return found


def has_weights(source: Path) -> bool:
    """Whether all files of weights that a loader opens are there: of the hub's cache, some may
    still be missing."""
    try:
        return bool(weights(source))
    except InputError:
        return False


def check_weights(source: Path) -> None:
    """Refuse a checkpoint that has no weights but an adapter's, or none."""
    if (source / "adapter_config.json").is_file():
        raise InputError(
            f"{source} holds an adapter; merge it into its base model first, and give the merged "
            f"one."
        )
    if not weights(source):
        raise InputError(
            f"{source} holds no weights that a loader opens ({', '.join(_WEIGHTS)}); {REMEDY}, or "
            "convert it: gather the shards of a training run, rename a single file."
        )


def _copied(source: Path) -> list[Path]:
    """The files that an export has of a checkpoint, relative to it; InputError if one of these
    names is of a folder, or of a link that leads nowhere."""
    found = {file for pattern in _KEPT for file in source.glob(pattern)}
    kept = [file for file in found if file.name[0] != "."]
    for file in kept:
        if not file.is_file():
            raise InputError(f"{file} is no file; put the file itself there, or remove it.")
    return [*weights(source), *sorted(file.relative_to(source) for file in kept)]


def _check_file(file: Path, source: Path) -> None:
    """Raise InputError if a file to copy cannot be read, is a link to somewhere else, or a JSON
    file that holds none."""
    target = file.resolve()
    homes = [source.resolve()]
    if homes[0].parent.name == "snapshots":  # of the hub's cache, where they are links to blobs
        repository = homes[0].parent.parent
        homes.append(repository / "blobs")
        shared = repository.parent / "blobs"  # which are links to what repositories share
        if (shared / ".huggingface-shared-blobs").is_file():
            homes.append(shared)
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
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(
            f"cannot read {file} as weights ({in_one_line(error)}); {_GET_WHOLE}."
        ) from error
    try:
        held = torch.load(file, map_location="meta", weights_only=True)
    except Exception as error:  # a broken pickle makes torch raise anything
        # torch's reason advises to load it nevertheless
        raise InputError(
            f"cannot read {file} as weights; {_GET_WHOLE}, or give safetensors if it is a pickle "
            "of more than tensors."
        ) from error
    if not isinstance(held, dict) or not all(map(torch.is_tensor, held.values())):
        raise InputError(f"{file} holds more than tensors by their names; give safetensors.")
    return held


def unfit(
    model: PreTrainedModel,
    tensors: dict[str, torch.Tensor],
    value: Callable[[str], torch.Tensor],
) -> str | None:
    """What of these tensors transformers, which knows older names, cannot make of a model, in
    words; or None.

    Args:
        model: built from its configuration; it needs no weights.
        tensors: by name; their values are not read.
        value: reads the values of one, on the CPU.
    """
    tied = {name for pair in model.all_tied_weights_keys.items() for name in pair}
    shapes = {model.get_parameter(name).shape for name in tied}
    alike = [name for name, tensor in tensors.items() if tensor.shape in shapes]
    compared = tied if len(alike) > 1 else set()
    if compared:
        tensors = tensors | {name: value(name) for name in alike}
    config = copying.deepcopy(model.config)
    quantised = getattr(config, "quantization_config", None)
    config.quantization_config = None
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    logs.disable(logs.WARNING)  # of what is refused here, and of what lies on the meta device
    try:
        with mock.patch.object(deepspeed, "_hf_deepspeed_config_weak_ref", None):  # all in one
            loaded, info = type(model).from_pretrained(
                None,
                config=config,
                state_dict=tensors,
                device_map={"": "meta"} | {name.rpartition(".")[0]: "cpu" for name in compared},
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
    except Exception as error:  # a conversion of names may raise anything
        return in_one_line(error)
    finally:
        logs.disable(logs.NOTSET)
        if shown:
            logging.enable_progress_bar()
    if quantised:  # packed, under other names
        adapted = [name for name in info["unexpected_keys"] if ".base_layer." in name]
        info = {"unexpected_keys": adapted}
    return misfit(loaded, info)


def misfit(model: PreTrainedModel, info: dict) -> str | None:
    """What does not fit by a loaded model and the loading info of ``from_pretrained``, in words; or
    None."""
    # a mismatched key comes as a tuple with its shapes
    for kind in ("missing", "unexpected", "mismatched"):
        found = info.get(f"{kind}_keys", ())
        if keys := sorted(key if isinstance(key, str) else key[0] for key in found):
            return f"{len(keys)} {kind}, for example {keys[0]}"
    tied = model.get_expanded_tied_weights_keys(all_submodels=True)
    # transformers unties what differs; other programs load one of the two
    if apart := sorted(tied.keys() - model.all_tied_weights_keys.keys()):
        return (
            f"its tie_word_embeddings makes {apart[0]} and {tied[apart[0]]} one, and they differ: "
            f"set it to false if both were trained, or take out {apart[0]}"
        )
    return None
