"""What a config.json says twice, or of several lengths: one is taken only where they agree."""

import pytest

from core.errors import InputError
from core.extend import extend, extend_checkpoint
from core.huggingface.checkpoint import read_config
from core.huggingface.embedding import rope_geometry
from core.huggingface.rotation import skeleton
from tests.files import edit, read
from tests.models import random_model

PAIRS = 8
L = 128
ORIGINAL = {"original_max_position_embeddings": L // 4}
YARN = {"rope_type": "yarn", "factor": 4.0, **ORIGINAL}
LINEAR = {"rope_type": "linear", "factor": 4.0}
LISTS = {"rope_type": "longrope", "short_factor": [1.0] * PAIRS, "long_factor": [2.0] * PAIRS}
ONE_FOR_ALL = LISTS | ORIGINAL | {"short_factor": [1.0], "long_factor": [2.0]}
HALF = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
LLAMA3 = {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def saved(directory, architecture="LlamaConfig", more=None, **options):
    """A checkpoint whose config.json holds further keys; None removes one."""
    random_model(architecture, **options).save_pretrained(directory)
    edit(directory / "config.json", **more or {})
    return directory


@pytest.mark.parametrize(
    "architecture, more, keys",
    [
        ("LlamaConfig", {"rope_scaling": YARN}, ("rope_parameters", "rope_scaling")),
        ("LlamaConfig", {"rope_theta": 5e5}, ("rope_parameters", "rope_theta")),
        (  # transformers takes the second, without a base
            "LlamaConfig",
            {"rope_parameters": {"rope_theta": 5e5}, "rope_scaling": {"rope_type": "default"}},
            ("rope_parameters", "rope_scaling"),
        ),
        ("StableLmConfig", {"partial_rotary_factor": 0.5}, ("partial_rotary_factor",)),
        ("GPTNeoXConfig", {"rotary_emb_base": 5e5}, ("rope_parameters", "rotary_emb_base")),
        (
            "LlamaConfig",
            {
                "rope_parameters": None,
                "rope_theta": 5e5,
                "rope_scaling": YARN | {"rope_theta": 1e4},
            },
            ("rope_scaling", "rope_theta"),
        ),
    ],
)
def test_rope_that_is_stated_twice_and_differently_is_refused(tmp_path, architecture, more, keys):
    source = saved(tmp_path / "model", architecture, more)
    with pytest.raises(InputError) as error:
        extend_checkpoint(source, tmp_path / "out", "pi", 2)
    assert all(key in str(error.value) for key in ("config.json", *keys))
    assert not (tmp_path / "out").exists()


def stating(**rope):
    return {"rope_parameters": {"rope_theta": 1e4, **rope}}


SEVEN = {**LISTS, "long_factor": [2.0] * 7, "original_max_position_embeddings": L // 2}


@pytest.mark.parametrize(
    "architecture, more, says",
    [
        *[
            ("LlamaConfig", stating(**rope), "original_max_position_embeddings")
            for rope in ({"rope_type": "yarn", "factor": 4.0}, LISTS, LLAMA3)
        ],
        ("LlamaConfig", {"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope_scaling"),
        ("Phi3Config", stating(**LISTS), "original_max_position_embeddings"),
        ("LlamaConfig", stating(**SEVEN), "8 numbers as short_factor and 7"),
        ("MiniMaxConfig", {"rotary_dim": 8}, "8 rotated dimensions.*turns 16"),
        *[
            ("LlamaConfig", half, "8 rotated dimensions.*turns 16")
            for half in (
                {"partial_rotary_factor": 0.5},
                {"rotary_pct": 0.5},
                {"rope_parameters": None, "rope_scaling": LINEAR | {"partial_rotary_factor": 0.5}},
            )
        ],
        ("GPTNeoXConfig", {"rope_parameters": None, "partial_rotary_factor": 0.5}, "turns 4"),
        (
            "Gemma3TextConfig",
            {"rope_parameters": {"full_attention": HALF, "sliding_attention": HALF}},
            "rotated dimensions",
        ),
    ],
)
def test_rope_that_readers_would_take_differently_is_refused(tmp_path, architecture, more, says):
    source = saved(tmp_path / "model", architecture, more)
    if architecture == "Phi3Config":  # its class would take 4096
        edit(source / "config.json", original_max_position_embeddings=None)
    with pytest.raises(InputError, match=says):
        read_config(source)


@pytest.mark.parametrize(
    "architecture, options",
    [("MiniMaxM2Config", {"head_dim": 16}), ("StableLmConfig", {}), ("Phi3Config", {})],
)
def test_a_share_of_a_head_that_its_class_turns_is_taken(tmp_path, architecture, options):
    more = {"rotary_dim": 8} if architecture == "MiniMaxM2Config" else {}
    share = {} if more else {"partial_rotary_factor": 0.5}
    config = read_config(saved(tmp_path / "model", architecture, more, **options, **share))
    assert rope_geometry(skeleton(config)).head_dim == 8


@pytest.mark.parametrize("method", ["ntk", "dprope"])
@pytest.mark.parametrize(
    "architecture, key, value",
    [
        ("GPTNeoXConfig", "rotary_pct", 1.0),
        ("StableLmConfig", "partial_rotary_factor", 1.0),
        ("Gemma3TextConfig", "rope_local_base_freq", 1e6),
    ],
)
def test_what_older_versions_would_take_otherwise_is_stated(
    tmp_path, architecture, key, value, method
):
    """They assume a part of the head, and another base of windows."""
    options = {key: value}
    if architecture == "Gemma3TextConfig":
        kinds = "full_attention", "sliding_attention"
        rope = {"rope_type": "default", "rope_theta": value}
        options = {"rope_parameters": {kind: dict(rope) for kind in kinds}, "layer_types": [*kinds]}
    source = saved(tmp_path / "model", architecture, **options)
    exported = extend_checkpoint(source, tmp_path / "extended", method, 2)
    assert read(exported / "config.json")[key] == value


@pytest.mark.parametrize(
    "architecture, more",
    [
        ("LlamaConfig", {"rope_theta": 10000, "rope_scaling": None}),
        ("LlamaConfig", {"rope_parameters": None, "rope_theta": 1e4, "rope_scaling": YARN}),
        ("GPTNeoXConfig", {"rotary_emb_base": 10000, "rotary_pct": 0.25}),
    ],
)
def test_rope_that_is_stated_twice_and_alike_is_extended(tmp_path, architecture, more):
    source = saved(tmp_path / "model", architecture, more)
    for method in ("pi", "yarn", "dprope"):  # whose exports state it twice
        source = extend_checkpoint(source, tmp_path / method, method, 2)
        read_config(source)


@pytest.mark.parametrize(
    "length, options, taken",
    [
        (L, {"model_max_length": L, "seq_length": L // 2}, L),  # vLLM takes the smallest
        (L, {"max_sequence_length": 16 * L}, "max_sequence_length"),
        (L, {"rope_parameters": LINEAR, "max_sequence_length": 4 * L}, "max_sequence_length"),
        (L, {"rope_parameters": LINEAR | ORIGINAL}, L),
        (2 * L, {"rope_parameters": LINEAR | ORIGINAL}, "max_position_embeddings"),
        (L, {"rope_parameters": YARN | {"factor": None}}, L),
        (L, {"original_max_position_embeddings": L // 2}, L),
        (L, {"rope_parameters": YARN, "model_max_length": 2 * L}, "model_max_length"),
        (L + 1, {"rope_parameters": YARN}, "max_position_embeddings"),
        (L, {"rope_parameters": LISTS | ORIGINAL}, L),
        (L // 4, {"rope_parameters": LISTS | ORIGINAL}, "max_position_embeddings"),
        (L, {"rope_parameters": ONE_FOR_ALL}, "1 factors.*turns 8 pairs"),
        (L, {"rope_parameters": LLAMA3 | ORIGINAL}, L),  # as Llama 3.1, by twice its factor
        (L, {"dual_chunk_attention_config": {"chunk_size": 32}}, "dual_chunk_attention_config"),
    ],
)
def test_one_length_is_taken_or_the_fault_is_named(length, options, taken):
    rope = {"rope_theta": 1e4, "rope_type": "default"} | options.pop("rope_parameters", {})
    config = random_model(max_position_embeddings=length, rope_parameters=rope, **options).config
    if isinstance(taken, int):
        assert rope_geometry(skeleton(config)).context_length == taken
        assert extend(skeleton(config), "pi", 2).config.max_position_embeddings == 2 * taken
    else:
        with pytest.raises(InputError, match=taken):
            rope_geometry(skeleton(config))
