"""What the JSON files of a checkpoint may hold: each is read here, against a schema.

Typed are the keys that this project reads, and those of RoPE that transformers reads. Whatever else
a file holds is checked by the class of transformers that reads it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, create_model
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME

from .. import files
from ..geometry import LARGEST
from ..schema import Truth, check, having

REMEDY = "give a complete checkpoint, as save_pretrained writes it"


# Other names for the context length, of which vLLM takes the smallest.
LENGTHS = (
    "max_length",
    "model_max_length",
    "max_sequence_length",
    "max_seq_length",
    "max_seq_len",
    "seq_length",
)


_WHOLE = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
_LENGTH = Annotated[_WHOLE, Field(ge=1)]
# a limit, which may be beyond all lengths: without one, tokenizers state 1e30
_LIMIT = Annotated[int, Field(strict=True, ge=1)]
_LIMIT_OF_TOKENS = Annotated[float, Field(strict=True, ge=1, multiple_of=1, allow_inf_nan=False)]
_NUMBER = Annotated[float, Field(strict=True, ge=0, le=LARGEST)]
# float32's largest is 3e38, and a pair that stands still is divided by 1e30
_DIVISOR = Annotated[float, Field(strict=True, gt=0, le=1e38)]
_IDS = _WHOLE | list[_WHOLE]
_TOKEN = str | having({"content": str}) | None  # or as what a tokenizer makes of it

# the share of a head's dimensions that is rotated, by the names under which programs read it
SHARES = ("partial_rotary_factor", "rotary_pct", "rotary_emb_fraction")
_NUMBERS_OF_SCALING = (
    "rope_theta",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "short_mscale",
    "long_mscale",
)
# the keys that a scaling replaces; others, such as partial_rotary_factor, stay
SCALING = {
    **dict.fromkeys(_NUMBERS_OF_SCALING, _NUMBER | None),
    **dict.fromkeys(("factor", "low_freq_factor", "high_freq_factor"), _DIVISOR | None),
    **dict.fromkeys(("rope_type", "type"), str),
    **dict.fromkeys(("short_factor", "long_factor"), list[_DIVISOR]),
    "original_max_position_embeddings": _LENGTH | None,
    "truncate": Truth,
}
_ROPE = SCALING | dict.fromkeys(SHARES, _NUMBER | None)
LAYERS = ("full_attention", "sliding_attention")  # types of layers, each with RoPE of its own
_OF_LAYERS = dict.fromkeys(LAYERS, having({}, _ROPE) | None)

# how this project extended a model: see core.huggingface.configuration
_SCALED = create_model(
    "object",
    __config__={"extra": "forbid"},
    frequencies=list[_NUMBER],
    attention_factor=(_NUMBER, 1.0),
    rope_type=str,
)
ROPE_EXTENSION = having(
    {"context_length": _LENGTH, "rope_theta": _NUMBER, "factor": _NUMBER},
    # other versions state no method and not what was before
    {
        "scaled": _SCALED,
        "method": str | None,
        "options": dict | None,
        "before": dict | None,
    },
)

_TEXT = {
    **dict.fromkeys(LENGTHS, _LIMIT | None),
    **dict.fromkeys(
        ("max_position_embeddings", "original_max_position_embeddings"), _LENGTH | None
    ),
    **dict.fromkeys(("rope_parameters", "rope_scaling"), having({}, _ROPE | _OF_LAYERS) | None),
    **dict.fromkeys(("rope_theta", "rotary_emb_base", *SHARES), _NUMBER | None),
    **dict.fromkeys(
        ("auto_map", "dual_chunk_attention_config", "quantization_config"), dict | None
    ),
    **dict.fromkeys(("architectures", "layer_types"), list[str] | None),
    **dict.fromkeys(("dtype", "torch_dtype"), str | None),
    "rope_extension": ROPE_EXTENSION,
    "num_hidden_layers": Annotated[_LENGTH, Field(le=10_000)] | None,  # each of which is built
    "sliding_window": _WHOLE | None,
    "rotary_dim": _WHOLE | None,
    "eos_token_id": _IDS | None,
    "is_causal": Truth,
    "return_dict": Literal[True],
    "transformers_weights": type(None),  # other weights than those that are looked for here
}
_TOKENS = dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), _TOKEN)
# by the file's name
SCHEMAS = {
    "config.json": having({}, _TEXT | {"text_config": having({}, _TEXT) | None}),
    "generation_config.json": having(
        {},
        {
            "eos_token_id": _IDS | None,
            "max_length": _LIMIT | None,
            "max_new_tokens": _LIMIT | None,
            "cache_implementation": str | None,
        },
    ),
    "tokenizer_config.json": having(
        {}, _TOKENS | {"model_max_length": _LIMIT_OF_TOKENS | None, "tokenizer_class": str | None}
    ),
    "special_tokens_map.json": having({}, _TOKENS),
    **dict.fromkeys(
        (SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME),
        having({"weight_map": Annotated[dict[str, str], Field(min_length=1)]}),
    ),
}


def read(file: Path) -> dict[str, Any]:
    """The content of a JSON file of a checkpoint: what one of this name must hold, or any object or
    list.

    Raises:
        InputError: it cannot be read, or holds a value of another type.
    """
    schema = SCHEMAS.get(file.name)
    content = files.read_json(file, REMEDY, dict if schema else (dict, list))
    if schema:
        check(content, schema, str(file), REMEDY)
    return content
