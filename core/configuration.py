"""A scaling in the words of a configuration, so that every reader of a checkpoint computes the same.

Any per-pair scaling can be written as the stock type ``longrope``, whose inverse frequencies are
1 / (factor_i · base^(2i/d)). Where another stock type says it all, that is written instead, because more readers know
it. Transformers 5 reads ``rope_parameters``; transformers 4 and most engines read ``rope_scaling`` and ``rope_theta``;
a written configuration has both.
"""

from __future__ import annotations

import math
from pathlib import Path

from transformers import PreTrainedConfig

from . import files
from .errors import InputError
from .geometry import RopeGeometry, RopeScaling

# Our own key: what the model was pre-trained with, which the keys that others read no longer say.
EXTENSION = "rope_extension"

# What a scaling replaces in the parameters; partial_rotary_factor and the like stay.
_SCALING_KEYS = {
    *("rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings", "attention_factor"),
    *("beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor"),
    *("short_factor", "long_factor", "short_mscale", "long_mscale"),
}
# The names that transformers 4 has for rope_theta and partial_rotary_factor, where they are others.
_OLDER_NAMES = {"gpt_neox": ("rotary_emb_base", "rotary_pct")}
# Further names of the context length, of which vLLM takes the smallest.
_LENGTHS = ("max_length", "model_max_length", "max_sequence_length", "max_seq_length", "max_seq_len", "seq_length")


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """The part of a configuration that is the language model's (all of it, but for multimodal models)."""
    return config.get_text_config(decoder=True)


def layer_type(config: PreTrainedConfig) -> str | None:
    """The layers to extend where RoPE differs by layer type (Gemma 3): the global ones; windows need none."""
    nested = config.nested_rope_parameter_keys(getattr(config, "rope_parameters", None) or {})
    if nested and "full_attention" not in nested:
        raise InputError(f"RoPE is set per layer type ({', '.join(nested)}), none of them full_attention.")
    return "full_attention" if nested else None


def rope_parameters(config: PreTrainedConfig) -> dict:
    """Those of the layers to extend.

    Raises:
        InputError: the configuration has none.
    """
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        raise InputError(
            f"a {config.model_type!r} model has no RoPE parameters in its configuration; "
            "the method needs a RoPE model such as Llama, Mistral or Qwen."
        )
    return parameters if layer_type(config) is None else parameters[layer_type(config)]


def scale_config(config: PreTrainedConfig, geometry: RopeGeometry, scaling: RopeScaling, factor: float) -> None:
    """Write a scaling into the text part of a configuration, in place.

    Raises:
        InputError: an attention factor that this architecture's configuration cannot say.
    """
    longer = round(geometry.context_length * factor)
    layers, current = layer_type(config), rope_parameters(config)
    only_longrope = hasattr(config, "original_max_position_embeddings")  # Phi-3, which knows no other type
    stock = None if only_longrope else scaling.stock
    if stock and layers and "rope_theta" in stock:
        stock = None  # transformers 4 has one base for all layers
    scaled = {"rope_theta": geometry.base, **(stock or longrope(geometry, scaling, longer))}
    if only_longrope:
        # It reads the original length at the top of the configuration and chooses the attention factor by it.
        for key in ("attention_factor", "short_mscale", "long_mscale"):
            scaled.pop(key, None)
        original = scaled["original_max_position_embeddings"]
        if not math.isclose(recomputed_attention_factor(longer, original), scaling.attention_factor, rel_tol=1e-3):
            raise InputError(
                f"a {config.model_type!r} configuration cannot say an attention factor of "
                f"{scaling.attention_factor:g}; take one of at least 1."
            )
        config.original_max_position_embeddings = original
    parameters = {key: value for key, value in current.items() if key not in _SCALING_KEYS} | scaled
    # Configurations are shared with the rotary embedding, so they are changed in place.
    config.rope_parameters = parameters if layers is None else {**config.rope_parameters, layers: parameters}
    config.max_position_embeddings = longer
    if getattr(config, "head_dim", 0) is None:  # Mixtral's default, which longrope and yarn cannot read
        config.head_dim = config.hidden_size // config.num_attention_heads
    extension = {"context_length": int(geometry.context_length), "rope_theta": geometry.base, "factor": float(factor)}
    setattr(config, EXTENSION, extension)


def longrope(geometry: RopeGeometry, scaling: RopeScaling, longer: int) -> dict:
    """Any scaling, as parameters of the type ``longrope``.

    Its original length chooses between two lists of factors, which are equal here, and in readers that do not take the
    stated attention factor a it stands for it: they compute √(1 + ln(L'/k) / ln k), which is a where k = L'^(1/a²).
    """
    attention_factor = float(scaling.attention_factor)
    original = min(max(round(longer ** (1 / attention_factor**2)), 2), longer)
    factors = (geometry.inv_freq / scaling.inv_freq).tolist()  # Python floats survive JSON exactly
    parameters = {
        "rope_type": "longrope",
        "factor": longer / original,
        "original_max_position_embeddings": original,
        "short_factor": factors,
        "long_factor": factors,
        "attention_factor": attention_factor,
    }
    if recomputed_attention_factor(longer, original) != attention_factor:
        # vLLM and SGLang take these; transformers says that it does not know them, so they are not always written.
        parameters |= {"short_mscale": attention_factor, "long_mscale": attention_factor}
    return parameters


def recomputed_attention_factor(longer: int, original: int) -> float:
    """LongRoPE's attention factor for a context of `longer` tokens after one of `original`."""
    return math.sqrt(1 + math.log(longer / original) / math.log(original))


def older_keys(config: PreTrainedConfig) -> dict:
    """The RoPE of a configuration's text part in the keys of transformers 4."""
    parameters = dict(rope_parameters(config))
    base, share = _OLDER_NAMES.get(config.model_type, ("rope_theta", "partial_rotary_factor"))
    keys = {base: parameters.pop("rope_theta")}
    if (rotated := parameters.pop("partial_rotary_factor", 1.0)) != 1:
        keys[share] = rotated
    if hasattr(config, "original_max_position_embeddings") and "short_factor" in parameters:  # Phi-3 takes no more
        parameters = {"type": "longrope"} | {key: parameters[key] for key in ("short_factor", "long_factor")}
    keys["rope_scaling"] = None if parameters == {"rope_type": "default"} else parameters
    if layer_type(config):
        windows = config.rope_parameters.get("sliding_attention") or {}
        if windows.get("rope_theta", keys[base]) != keys[base]:
            keys["rope_local_base_freq"] = windows["rope_theta"]
    return keys


def write(directory: Path, config: PreTrainedConfig, before: PreTrainedConfig | None = None) -> None:
    """Make the JSON files of a checkpoint say what a configuration says, in the keys of every reader.

    Args:
        directory: of the checkpoint; ``config.json`` and what else states a length or a tokenizer's class is rewritten.
        config: of the model.
        before: what ``config.json`` was read as, where it says so still; None where it says what `config` says.
    """
    text = text_config(config)
    file = directory / "config.json"
    stated = files.read_json(file, "write the checkpoint again")
    part = _text_part(stated, config)
    if before is not None:
        old, new = text_config(before).to_dict(), text.to_dict()
        _update(part, {key: value for key, value in new.items() if key not in old or old[key] != value})
    longer = getattr(text, "max_position_embeddings", None)
    if getattr(text, "rope_parameters", None):
        _update(part, {"rope_parameters": text.rope_parameters} | older_keys(text))
    if known := getattr(text, EXTENSION, None):
        _raise(part, [key for key in _LENGTHS if (part.get(key) or 0) >= known["context_length"]], longer)
    files.write_json(file, stated)

    for name in ("generation_config.json", "tokenizer_config.json"):
        if (file := directory / name).is_file():
            stated = files.read_json(file, "mend it, or remove it")
            _raise(stated, ("max_length",) if name.startswith("generation") else ("model_max_length",), longer)
            _for_transformers_4(stated)
            files.write_json(file, stated)


def _text_part(stated: dict, config: PreTrainedConfig) -> dict:
    for name in config.sub_configs:
        if getattr(config, name, None) is text_config(config):
            return stated.setdefault(name, {})
    return stated


def _update(stated: dict, changes: dict) -> None:
    stated.update({key: value for key, value in changes.items() if key not in stated or stated[key] != value})


def _raise(stated: dict, keys: list[str] | tuple[str, ...], longer: int | None) -> None:
    for key in keys:
        if longer and isinstance(stated.get(key), int) and stated[key] < longer:
            stated[key] = longer


def _for_transformers_4(stated: dict) -> None:
    """A tokenizer's class and further tokens by the names that transformers 4 and 5 both know."""
    if stated.get("tokenizer_class") == "TokenizersBackend":
        stated["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(stated.get("extra_special_tokens"), list) and "additional_special_tokens" not in stated:
        stated["additional_special_tokens"] = stated.pop("extra_special_tokens")
