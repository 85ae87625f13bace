"""What tells models apart, as short hashes: their weights, their tokenizer, their configuration, in
whatever files these stand.

No weights are loaded, and nothing is read that was not given.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

import records
from core import CLEX_FILE, files
from core.huggingface.checkpoint import weights
from core.huggingface.configuration import EXTENSION

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


def of_tokenizer(tokens: PreTrainedTokenizerBase) -> str:
    """A hash of how a tokenizer reads a text."""
    if tokens.is_fast:
        rules = json.loads(tokens.backend_tokenizer.to_str())
        rules = {key: value for key, value in rules.items() if key not in ("padding", "truncation")}
    else:
        rules = {
            "class": type(tokens).__name__,
            "vocabulary": tokens.get_vocab(),
            "read": tokens(_TEXT).input_ids,
        }
    rules |= {"cleans": True} if tokens.clean_up_tokenization_spaces else {}
    special = {"special": tokens.special_tokens_map, "added": tokens("").input_ids}
    return records.identity(rules=rules, **special)


def of_config(config: PreTrainedConfig) -> str:
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


def of_weights(directory: Path) -> dict[str, str]:
    """The SHA-256 of each file of weights that is loaded from a directory, by its path there.

    Of safetensors it is that of all tensors, whether they lie in one file or in shards.
    """
    found = weights(directory)
    holders = {
        name: directory / file
        for file, held in found.items()
        for name in held
        if file.suffix == ".safetensors"
    }
    hashes = {"tensors": _tensors_hash(holders)} if holders else {}
    others = [file for file in found if file.suffix not in (".json", ".safetensors")]
    if not found:
        others = [file.relative_to(directory) for file in directory.glob("*.gguf")]
    if (directory / CLEX_FILE).is_file():
        others.append(Path(CLEX_FILE))
    return hashes | {str(file): files.sha256(directory / file) for file in sorted(others)}


def _tensors_hash(holders: dict[str, Path]) -> str:
    """The SHA-256 of names, dtypes, shapes and bytes of tensors, in the order of names.

    Args:
        holders: the safetensors file of each tensor.
    """
    whole = hashlib.sha256()
    opened = {file: safe_open(file, "pt") for file in set(holders.values())}
    for name in sorted(holders):
        tensor = opened[holders[name]].get_tensor(name)
        whole.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        whole.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return whole.hexdigest()
