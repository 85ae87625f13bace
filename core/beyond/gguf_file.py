"""Extend a GGUF file, quantised or not; the bytes of its tensors stay as they are.

For some architectures llama.cpp divides the inverse frequency θ_i by entry i of the tensor
``rope_freqs.weight``. There λ_i = θ_i/θ̂_i expresses any method. For the others llama.cpp has
metadata keys for a common divisor, another base and YaRN, and every other method is refused. Entry
i is dimension pair i: GGUF permutes a Llama's rows of W_q and W_k so that the two dimensions of a
pair are adjacent, and keeps the order of the pairs.

Files are read and written by the package gguf. Source: the specification of GGUF 3, docs/gguf.md in
the repository of ggml.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from .. import files, rope
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling

FREQS = "rope_freqs.weight"
# Which architecture takes which scaling; tried on a small random model of each with
# llama-cpp-python 0.3.36.
# By rope_freqs.weight; "llama" has Mistral, too.
TAKES_ANY = (
    "llama",
    "granite",
    "granitemoe",
    "arcee",
    "exaone4",
)
TAKES_LISTS = ("phi3",)  # by rope_factors_long.weight and rope_factors_short.weight
# These take only a common divisor, another base or YaRN; given a tensor of factors, they do not
# load. Left out is deepseek2, whose divisor and YaRN change the scale of the attention, too.
TAKES_KEYS = (
    "qwen2",
    "qwen2moe",
    "qwen3",
    "qwen3moe",
    "stablelm",
    "olmo",
    "olmo2",
    "olmoe",
    "gemma",
    "gemma2",
    "starcoder2",
    "command-r",
    "smollm3",
    "seed_oss",
    "glm4",
    "glm4moe",
    "chatglm",
    "phi2",
    "gptneox",
    "falcon",
    "nemotron",
    "ernie4_5",
    "hunyuan-dense",
)


def extend_gguf(
    source: str | os.PathLike, output: str | os.PathLike, method: str, factor: float, **options
) -> Path:
    """Write `source`, scaled by `method` for a context `factor` times as long, to `output`.

    Args:
        source: a GGUF file of one part, pre-trained without scaling.
        output: must not exist; an interruption leaves nothing there.
        method, factor, options: see :func:`core.rope.scale`.

    Returns:
        `output`.

    Raises:
        InputError: the file is missing or scaled already, llama.cpp cannot apply this method to its
            architecture, an option is wrong, or `output` exists.
    """
    rope.check_fixed(method)
    reader = _read(Path(source))
    geometry = _geometry(reader, source)
    scaling = rope.scale(geometry, method, factor, **options)
    name = _value(reader, "general.architecture")
    if _value(reader, f"{name}.attention.sliding_window"):
        if name == "exaone4":
            raise InputError(
                f"{source} has RoPE in its windowed layers alone, and they see no longer context."
            )
        if name == "olmo2" and "rope_theta" in (
            scaling.stock or {}
        ):  # llama.cpp has one base for all its layers
            raise InputError(
                f"llama.cpp would change the base of {source}'s windowed layers, too; take pi or "
                f"yarn."
            )
    keys, tensors = _additions(name, geometry, scaling, factor)
    with files.new(Path(output)) as partial:
        _write(reader, partial, keys, tensors)
    return Path(output)


def _read(file: Path) -> gguf.GGUFReader:
    """The file, mapped into memory rather than read."""
    try:
        reader = gguf.GGUFReader(file)
        for field in reader.fields.values():
            field.contents()  # which may be no text
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise InputError(
            f"cannot read {file} as GGUF ({error}); give a complete GGUF file."
        ) from error
    if reader.endianess != gguf.GGUFEndian.LITTLE:
        raise InputError(
            f"{file} is big-endian; convert it first, by `gguf-convert-endian {file} little`."
        )
    if _value(reader, "split.count", 1) > 1:
        raise InputError(
            f"{file} is one part of several; merge them with `llama-gguf-split --merge` first."
        )
    kind = _value(reader, "general.type", "model")
    if kind != "model":
        raise InputError(
            f"{file} holds no model, but one part of it or for it ({kind}); give the model's file, "
            "with any adapter merged into it."
        )
    if not reader.tensors:
        raise InputError(f"{file} holds no weights; give a GGUF file with the model's weights.")
    return reader


def _value(reader: gguf.GGUFReader, key: str, default: Any = None) -> Any:
    field = reader.get_field(key)
    return default if field is None else field.contents()


def _geometry(reader: gguf.GGUFReader, source: str | os.PathLike) -> RopeGeometry:
    """The geometry of a file whose RoPE is not scaled; L is its context length.

    Raises:
        InputError: the file states none, or is scaled; the message says by which key or tensor.
    """
    name = _value(reader, "general.architecture")
    length = _value(reader, f"{name}.context_length")
    rotated = _value(reader, f"{name}.rope.dimension_count") or _value(
        reader, f"{name}.attention.key_length"
    )
    if not rotated:
        width, heads = (
            _value(reader, f"{name}.{key}") for key in ("embedding_length", "attention.head_count")
        )
        rotated = (
            width // heads if isinstance(width, int) and isinstance(heads, int) and heads else None
        )
    if not length or not rotated:
        raise InputError(
            f"{source} states no context length or no head dimension; give the file of a RoPE "
            f"model."
        )
    plain = {
        "rope.scaling.type": "none",
        "rope.scaling.factor": 1.0,
        "rope.scale_linear": 1.0,
        "rope.scaling.attn_factor": 1.0,
        "rope.scaling.original_context_length": length,
    }
    values = {key: _value(reader, f"{name}.{key}", unscaled) for key, unscaled in plain.items()}
    reasons = [f"{name}.{key} is {value}" for key, value in values.items() if value != plain[key]]
    reasons += [
        f"it holds {t.name}"
        for t in reader.tensors
        if t.name.startswith(("rope_freqs.", "rope_factors_"))
    ]
    if reasons:
        raise InputError(
            f"{source} is scaled already ({reasons[0]}); start from the file made without scaling "
            "or, where its maker scaled the model, extend the checkpoint and serve that by another "
            "engine."
        )
    base = _value(reader, f"{name}.rope.freq_base", 10000.0)
    if not all(isinstance(number, int | float) for number in (rotated, base, length)):
        raise InputError(
            f"{source} states a RoPE of {rotated!r} dimensions, base {base!r} and {length!r} "
            "tokens, which are no numbers; give a file that llama.cpp loads."
        )
    return RopeGeometry(int(rotated), float(base), int(length))


def _additions(
    architecture: str, geometry: RopeGeometry, scaling: RopeScaling, factor: float
) -> tuple[dict[str, int | float | str], dict[str, np.ndarray]]:
    """The keys and the float32 tensors [pairs] that make llama.cpp apply a scaling.

    Raises:
        InputError: llama.cpp cannot apply it to this architecture.
    """
    divisors = geometry.inv_freq / scaling.inv_freq
    keys: dict[str, int | float | str] = {"rope.scaling.type": "none"}
    tensors = {}
    stock = scaling.stock
    if architecture in TAKES_ANY:
        tensors = {FREQS: divisors}
    elif architecture in TAKES_LISTS:
        keys = {"rope.scaling.type": "longrope"}
        tensors = dict.fromkeys(("rope_factors_long.weight", "rope_factors_short.weight"), divisors)
    elif (
        architecture in TAKES_KEYS and stock and "low_freq_factor" not in stock
    ):  # Llama 3's scaling has no key
        if "factor" in stock:
            keys = {
                "rope.scaling.type": stock["rope_type"],
                "rope.scaling.factor": float(stock["factor"]),
            }
        if "rope_theta" in stock:
            keys["rope.freq_base"] = float(stock["rope_theta"])
        keys |= {
            f"rope.scaling.yarn_{name}": stock[name]
            for name in ("beta_fast", "beta_slow")
            if name in stock
        }
    else:
        takes = (
            "no factor for each pair"
            if architecture in TAKES_KEYS
            else "no scaling that is known to be right"
        )
        raise InputError(
            f"llama.cpp takes {takes} for the architecture {architecture!r}; take one that does "
            f"({', '.join(TAKES_ANY + TAKES_LISTS)}), or serve the checkpoint by another engine."
        )
    if (
        tensors and scaling.attention_factor != 1
    ):  # where keys state the type, llama.cpp computes the factor itself
        keys["rope.scaling.attn_factor"] = scaling.attention_factor
    keys["context_length"] = round(geometry.context_length * factor)
    keys["rope.scaling.original_context_length"] = geometry.context_length
    of_architecture = {f"{architecture}.{key}": value for key, value in keys.items()}
    return of_architecture, {
        name: np.asarray(value, dtype="<f4") for name, value in tensors.items()
    }


def _write(
    reader: gguf.GGUFReader,
    target: Path,
    keys: dict[str, int | float | str],
    tensors: dict[str, np.ndarray],
) -> None:
    """Write the file with these keys set and these tensors added; its own tensors as they are."""
    types = gguf.GGUFValueType
    kinds = {str: types.STRING, int: types.UINT32, float: types.FLOAT32}
    fields = {
        field.name: (field.contents(), field.types[0], field.types[-1])
        for field in reader.fields.values()
        if not field.name.startswith("GGUF.")
        and field.types != [types.ARRAY]  # an empty array has no type
    }
    fields |= {key: (value, kinds[type(value)], kinds[type(value)]) for key, value in keys.items()}
    del fields["general.architecture"]  # which the writer states
    writer = gguf.GGUFWriter(target, _value(reader, "general.architecture"))
    writer.data_alignment = reader.alignment
    for key, field in fields.items():
        writer.add_key_value(key, *field)
    for tensor in reader.tensors:
        data = tensor.data
        writer.add_tensor_info(tensor.name, data.shape, data.dtype, data.nbytes, tensor.tensor_type)
    for name, values in tensors.items():
        writer.add_tensor_info(name, values.shape, values.dtype, values.nbytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        writer.write_tensor_data(tensor.data)
    for values in tensors.values():
        writer.write_tensor_data(values)
    writer.close()
