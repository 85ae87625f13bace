"""Write a scaling into a Hugging Face configuration, so that every engine that loads the checkpoint
computes the same.

Any per-pair scaling, one on top of another too, can be written as the stock type ``longrope``,
whose inverse frequencies are 1 / (factor_i · base^(2i/d)). Where another stock type describes the
scaling fully, that one is written, because more engines know it. Transformers 5 reads
``rope_parameters``; transformers 4 and most engines read ``rope_scaling`` and ``rope_theta``; a
written configuration has both.
"""

import copy
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

from transformers import PreTrainedConfig

from .. import files
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from . import schema

# Our own key: it keeps the geometry before extension, which the standard keys no longer state, what
# they were, and the method with its options.
EXTENSION = "rope_extension"
# The fields that an extension changes.
CHANGED = (
    "rope_parameters",
    "max_position_embeddings",
    "original_max_position_embeddings",
    "head_dim",
)

_OF_LENGTHS = ("llama3", "yarn", "longrope")  # which scale by an original length
# The types that can be extended: plain RoPE, and those that scale it by fixed factors.
_EXTENDED = ("default", "linear", *_OF_LENGTHS)
# Architectures for which transformers 4 has other names for rope_theta and partial_rotary_factor.
_NAMES = ("rope_theta", "partial_rotary_factor")
_OLDER_NAMES = dict.fromkeys(("gpt_neox", "gpt_neox_japanese"), ("rotary_emb_base", "rotary_pct"))


def text_config(config: PreTrainedConfig) -> PreTrainedConfig:
    """The part of a configuration that describes the language model: all of it, except in
    multimodal models."""
    return config.get_text_config(decoder=True)


def text_section(config: PreTrainedConfig) -> str | None:
    """The key under which a multimodal model's configuration holds the language model's; None if it
    is all of it."""
    text = text_config(config)
    return next((name for name in config.sub_configs if getattr(config, name, None) is text), None)


def check_section(config: PreTrainedConfig, section: dict, source: Path) -> None:
    """Refuse a checkpoint's config.json of which transformers would make something else.

    Args:
        config: what transformers made of it.
        section: what the file holds of the language model.
        source: the checkpoint, for messages.

    Raises:
        InputError: it has no context length, or its RoPE no original length, which transformers
            would make up; or it states RoPE twice and differently, of which transformers would
            take one.
    """
    key = text_config(config).attribute_map.get(
        "max_position_embeddings", "max_position_embeddings"
    )
    if not section.get(key):
        raise InputError(
            f"{source}/config.json does not state the context length the model was pre-trained "
            f"with; add {key!r} to it."
        )
    original = "original_max_position_embeddings"
    for place, part in rope_parts(section):
        kind = part.get("rope_type", part.get("type"))
        if kind in _OF_LENGTHS and not (part.get(original) or section.get(original)):
            raise InputError(
                f"{source}/config.json does not state from which length RoPE of the type "
                f"{kind!r} was scaled; add {original!r} to its {place}."
            )
    stated: dict[str, tuple[str, object]] = {}
    for key, place, value in _stated_rope(section, text_config(config)):
        other, first = stated.setdefault(key, (place, value))
        if value != first:
            raise InputError(
                f"{source}/config.json states RoPE twice and differently: {key} in {other} and in "
                f"{place}; keep the one that the model was trained with."
            )


def rope_parts(section: dict) -> Iterator[tuple[str, dict]]:
    """(where they stand, RoPE parameters) in a part of a config.json: those of all layers, and
    those of each type of layers."""
    for place in ("rope_parameters", "rope_scaling"):
        parameters = section.get(place) or {}
        for part in (parameters, *filter(None, map(parameters.get, schema.LAYERS))):
            yield place, part


def _stated_rope(section: dict, config: PreTrainedConfig) -> Iterator[tuple[str, str, object]]:
    """(key, where it stands, value) of the RoPE in a part of a config.json, of the layers to
    extend."""
    for place in ("rope_parameters", "rope_scaling"):
        if parameters := section.get(place):
            parameters = dict(parameters.get("full_attention") or parameters)
            # Of both, transformers takes rope_scaling alone, and this base if it states none.
            base = rope_parameters(config)["rope_theta"]
            implied = {"rope_type": parameters.pop("type", "default"), "rope_theta": base}
            for key, value in (implied | parameters).items():
                yield key, place, value
    for key, place in zip(_NAMES, _OLDER_NAMES.get(config.model_type, _NAMES)):
        if place in section:
            yield key, place, section[place]


def layer_type(config: PreTrainedConfig) -> str | None:
    """The layer type to extend where RoPE differs by layer type (Gemma 3), else None.

    It is that of the global layers; sliding-window layers need no extension.

    Raises:
        InputError: the global layers have no RoPE of their own.
    """
    parameters = getattr(config, "rope_parameters", None) or {}
    nested = config.nested_rope_parameter_keys(parameters)
    if nested and not parameters.get("full_attention"):
        rotating = ", ".join(sorted(key for key in nested if parameters[key]))
        raise InputError(
            f"a {config.model_type!r} model sets RoPE for its layers of type {rotating}, not for "
            f"those of type "
            "full_attention, which alone can be extended; give another model."
        )
    return "full_attention" if nested else None


def rope_parameters(config: PreTrainedConfig) -> dict:
    """The RoPE parameters of the layers to extend.

    Raises:
        InputError: the configuration has none, or two lists of factors for different numbers of
            pairs.
    """
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        raise InputError(
            f"a {config.model_type!r} model has no RoPE parameters in its configuration; "
            "the method needs a RoPE model such as Llama, Mistral or Qwen."
        )
    if layers := layer_type(config):
        parameters = parameters[layers]
    short, long = (len(parameters.get(f"{name}_factor") or ()) for name in ("short", "long"))
    if short != long:
        raise InputError(
            f"the configuration's RoPE has {short} numbers as short_factor and {long} as "
            "long_factor; give each one for each pair."
        )
    return parameters


def trained_length(config: PreTrainedConfig) -> int:
    """L in tokens: the length that the model was trained for with the RoPE that it has.

    It is max_position_embeddings, but for YaRN: some checkpoints state the length before YaRN
    there, some that after, so L is what YaRN's factor reaches.

    Raises:
        InputError: the configuration states no length, several, or one that its RoPE does not
            scale to; or this RoPE cannot be extended: it does not rotate by fixed inverse
            frequencies, attention is scaled beside it, or engines do not read it.
    """
    parameters = rope_parameters(config)
    length = getattr(config, "max_position_embeddings", None)
    if not length:
        raise InputError(
            "the configuration states no context length; add max_position_embeddings to its "
            "config.json."
        )
    _check_type(config, parameters)
    if parameters.get("original_max_position_embeddings"):
        length = _scaled_length(parameters, length)
    for key in schema.LENGTHS:
        other = getattr(config, key, None)
        if other is not None and other > length:
            raise InputError(
                f"the configuration states {other} tokens as {key}, where its RoPE and "
                f"max_position_embeddings say {length}; write the length that the model was "
                f"trained for as max_position_embeddings, in its config.json, and remove {key}."
            )
    return length


def _scaled_length(parameters: dict, length: int) -> int:
    """L of a RoPE that scales an original length; InputError if it scales to another one."""
    kind = parameters["rope_type"]
    original = parameters["original_max_position_embeddings"]
    # A factor of llama3 says nothing about the length: Llama 3.1 has 8 for 16 times as many tokens.
    factor = None if kind == "llama3" else parameters.get("factor")
    # Without a factor YaRN's is what the lengths say.
    unstated = length if kind == "yarn" else math.inf
    reached = round(original * factor) if factor else unstated
    # Factors that are the same for short and long prompts may stop anywhere.
    alike = kind == "longrope" and parameters["short_factor"] == parameters["long_factor"]
    cut = length <= original and kind not in ("default", "yarn") and not alike
    if cut or length > reached:
        raise InputError(
            f"the configuration scales RoPE ({kind}) from {original} to "
            f"{reached if factor else 'more'} tokens, and its max_position_embeddings is {length}; "
            f"write the length that the model was trained for there, in its config.json."
        )
    return int(reached) if kind == "yarn" else length


def _check_type(config: PreTrainedConfig, parameters: dict) -> None:
    """Raise InputError if this RoPE cannot be extended, whatever its length."""
    kind = parameters.get("rope_type", "default")
    reason = None
    if kind == "dynamic":
        reason = "it follows each prompt's length; remove the scaling from config.json first"
    elif kind not in _EXTENDED:
        reason = f"it is none of {', '.join(_EXTENDED)}; give another model"
    elif parameters.get("llama_4_scaling_beta") or parameters.get("mscale_all_dim"):
        reason = (
            "attention is scaled beside it (llama_4_scaling_beta or mscale_all_dim); give another "
            "model"
        )
    elif getattr(config, "dual_chunk_attention_config", None):
        reason = (
            "engines read dual_chunk_attention_config in its place; remove that from config.json "
            "first"
        )
    if reason:
        raise InputError(
            f"a {config.model_type!r} model's RoPE of the type {kind!r} cannot be extended: "
            f"{reason}."
        )


def forms(
    config: PreTrainedConfig, geometry: RopeGeometry, scaling: RopeScaling, longer: int
) -> Iterator[dict]:
    """The RoPE parameters that may express a scaling, the most widely known first.

    A model's class may ignore a form or fail on it, so :func:`scale_config` is only the first half:
    look at what the class computes.

    Raises:
        InputError: this architecture's configuration cannot express the attention factor.
    """
    factors = longrope(geometry, scaling, longer)
    if _is_phi3(config):
        yield _phi3(config, factors, longer)
    # transformers 4 has one base for all layers
    elif scaling.stock and not (layer_type(config) and "rope_theta" in scaling.stock):
        yield scaling.stock
    yield factors


def _is_phi3(config: PreTrainedConfig) -> bool:
    """Whether a configuration's class has the original length beside the RoPE parameters, as Phi-3;
    PhiMoE's only copies it there."""
    return hasattr(type(config), "original_max_position_embeddings")


def _phi3(config: PreTrainedConfig, factors: dict, longer: int) -> dict:
    """What Phi-3 reads of parameters of the type ``longrope``, the only one that it knows.

    It reads the original length k at the top of the configuration, and computes the attention
    factor a = √(1 + ln(L'/k) / ln k) from it. So k is L'^(1/a²).

    Raises:
        InputError: no k gives this attention factor.
    """
    wanted = factors["attention_factor"]
    original = min(max(round(longer ** (1 / wanted**2)), 2), longer)
    computed = math.sqrt(1 + math.log(longer / original) / math.log(original))
    if not math.isclose(computed, wanted, rel_tol=1e-3):
        raise InputError(
            f"a {config.model_type!r} configuration cannot express an attention factor of "
            f"{wanted:g} for {longer} tokens; give one of at least 1."
        )
    return {
        "rope_type": "longrope",
        "short_factor": factors["short_factor"],
        "long_factor": factors["long_factor"],
        "original_max_position_embeddings": original,
        "factor": longer / original,
    }


def scale_config(
    config: PreTrainedConfig, geometry: RopeGeometry, form: dict, factor: float
) -> None:
    """Write one of the :func:`forms` of a scaling into the text part of a configuration, in
    place."""
    layers = layer_type(config)
    fields = {key: copy.deepcopy(value) for key, value in vars(config).items() if key in CHANGED}
    before = getattr(config, EXTENSION, {"before": fields}).get("before")
    kept = {
        key: value for key, value in rope_parameters(config).items() if key not in schema.SCALING
    }
    parameters = kept | {"rope_theta": geometry.base, **form}
    # Configurations are shared with the rotary embedding, so they are changed in place.
    config.rope_parameters = (
        parameters if layers is None else {**config.rope_parameters, layers: parameters}
    )
    original = "original_max_position_embeddings"  # of the type longrope
    if original in form and hasattr(config, original):
        config.original_max_position_embeddings = form["original_max_position_embeddings"]
    config.max_position_embeddings = round(geometry.context_length * factor)
    if (
        getattr(config, "head_dim", 0) is None
    ):  # Mixtral's default, which longrope and yarn cannot read
        config.head_dim = config.hidden_size // config.num_attention_heads
    extension: dict = {
        "context_length": geometry.context_length,
        "rope_theta": geometry.base,
        "factor": float(factor),
        "before": before,
    }
    scaled = geometry.to_dict()
    for key in ("head_dim", "base", "context_length"):
        del scaled[key]
    if scaled:
        extension["scaled"] = scaled
    setattr(config, EXTENSION, extension)


def longrope(geometry: RopeGeometry, scaling: RopeScaling, longer: int) -> dict:
    """Any scaling, written as parameters of the type ``longrope``.

    The type's original length k chooses between two lists of factors; here the lists are equal. k
    is L', because SGLang does not rotate the token at position k. Transformers reads
    attention_factor; vLLM and SGLang read the mscales, of which transformers warns as of keys that
    it does not know.
    """
    attention_factor = scaling.attention_factor
    factors = (geometry.of_base / scaling.inv_freq).tolist()  # Python floats survive JSON exactly
    return {
        "rope_type": "longrope",
        "factor": 1.0,
        "original_max_position_embeddings": longer,
        "short_factor": factors,
        "long_factor": factors,
        "attention_factor": attention_factor,
        "short_mscale": attention_factor,
        "long_mscale": attention_factor,
    }


def older_keys(config: PreTrainedConfig) -> dict:
    """The RoPE parameters of a configuration's text part, under the keys of transformers 4."""
    parameters = dict(rope_parameters(config))
    base, share = _OLDER_NAMES.get(config.model_type, _NAMES)
    keys = {base: parameters.pop("rope_theta")}
    if "partial_rotary_factor" in parameters:  # 1, too: classes default to less
        keys[share] = parameters.pop("partial_rotary_factor")
    if _is_phi3(config) and "short_factor" in parameters:  # it takes no more
        parameters = {"type": "longrope"} | {
            key: parameters[key] for key in ("short_factor", "long_factor")
        }
    if config.model_type in ("olmo", "olmo2") and parameters["rope_type"] == "linear":
        # which take no other key
        parameters = {"type": "linear", "factor": parameters["factor"]}
    keys["rope_scaling"] = None if parameters == {"rope_type": "default"} else parameters
    if layer_type(config):
        windows = config.rope_parameters.get("sliding_attention") or {}
        if "rope_theta" in windows:
            keys["rope_local_base_freq"] = windows["rope_theta"]
    return keys


def write(
    directory: Path, config: PreTrainedConfig, before: PreTrainedConfig | None = None
) -> None:
    """Rewrite the JSON files of a checkpoint to match a configuration, under the keys that every
    engine reads.

    Args:
        directory: the checkpoint. ``config.json`` is rewritten, and every file that states a length
            or a tokenizer's class.
        config: the model's configuration.
        before: the configuration that ``config.json`` still holds; None if the file already matches
            `config`.
    """
    text = text_config(config)
    file = directory / "config.json"
    content = schema.read(file)
    section = content.setdefault(name, {}) if (name := text_section(config)) else content
    if content.pop("auto_map", None):
        warnings.warn(
            "the export leaves out auto_map, which names code of the checkpoint's own", stacklevel=2
        )
    if before is not None:
        section.update(changes(before, config))
    longer = getattr(text, "max_position_embeddings", None) or 0
    if getattr(text, "rope_parameters", None):
        section.update({"rope_parameters": text.rope_parameters} | older_keys(text))
    # A shorter length is a limit that somebody chose.
    pretrained = getattr(text, EXTENSION, {}).get("context_length", math.inf)
    for key in schema.LENGTHS:
        _raise(section, key, pretrained, longer)
    files.write_json(file, content)

    lengths = {
        "generation_config": ("max_length", pretrained),
        "tokenizer_config": ("model_max_length", 1),
    }
    for name, (key, least) in lengths.items():
        if (file := directory / f"{name}.json").is_file():
            content = schema.read(file)
            _raise(content, key, least, longer)
            _for_transformers_4(content)
            content.pop("auto_map", None)
            files.write_json(file, content)


def changes(before: PreTrainedConfig, config: PreTrainedConfig) -> dict:
    """What an extension changed in the text part of a configuration, under the keys of transformers
    5."""
    old = text_config(before).to_dict()
    new = text_config(config).to_dict()
    return {key: value for key, value in new.items() if key not in old or old[key] != value}


def _raise(content: dict, key: str, least: float, longer: int) -> None:
    """Raise a length between `least`, 1 or more, and `longer` to `longer`."""
    if least <= (content.get(key) or 0) < longer:
        content[key] = longer


def _for_transformers_4(content: dict) -> None:
    """Rename a tokenizer's class and its extra tokens to what transformers 4 and 5 both know."""
    if content.get("tokenizer_class") == "TokenizersBackend":
        content["tokenizer_class"] = "PreTrainedTokenizerFast"
    if (
        isinstance(content.get("extra_special_tokens"), list)
        and "additional_special_tokens" not in content
    ):
        content["additional_special_tokens"] = content.pop("extra_special_tokens")
