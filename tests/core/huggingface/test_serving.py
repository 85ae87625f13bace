"""The commands that serve a checkpoint without a copy, taken as each engine takes them."""

import json
import shlex
from itertools import pairwise

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoConfig

from core.extend import extend, extend_checkpoint
from core.huggingface.card import commands
from core.huggingface.rotation import skeleton
from core.rope import ORIGINAL, PROPOSED, TIME_REFERENCE
from tests.core.huggingface.test_families import FAMILIES, L, logits, qwen2_vl
from tests.models import SIZES, random_model


def flags(source, before, config):
    """The flags of each engine's line, by name; none where the line is a comment."""
    lines = commands(str(source), before, config).split("\n")[1::2]
    return [dict(pairwise(shlex.split(line, comments=True))) for line in lines]


def vllm_sets(config, given):
    """vLLM's ModelConfig sets each key, and merges the parameters within text_config."""
    text = given.pop("text_config", {})
    if text:
        config = config.text_config
        text["rope_parameters"] = config.rope_parameters | text["rope_parameters"]
    config.update(given | text)


def sglang_merges(config, given):
    """SGLang's get_config merges a dictionary into the one that the files hold."""
    for key, value in given.items():
        held = getattr(config, key, None)
        setattr(config, key, {**held, **value} if isinstance(held, dict) else value)


def sglang_sets(config, given):
    """Other versions set each key."""
    config.update(given)


APPLY = [
    ("--hf-overrides", vllm_sets),
    ("--json-model-override-args", sglang_merges),
    ("--json-model-override-args", sglang_sets),
]


def rotations(parameters, longer, engine):
    """cos of each position [positions, pairs] as an engine's longrope reads it while it generates.

    It has a table of k rows by the short factors and one of L' rows by the long ones below it.
    Position p is row p of the first, or k rows further down: in SGLang where p > k, in vLLM where
    the longest input has more than k tokens. Without an mscale it computes one.
    """
    k = parameters["original_max_position_embeddings"]
    tables = []
    computed = np.sqrt(1 + np.log(max(longer / k, 1)) / np.log(k))
    for name, rows in (("short", k), ("long", longer)):
        divisors = np.array(parameters[f"{name}_factor"])
        pairs = np.arange(len(divisors)) / len(divisors)
        angles = np.outer(np.arange(rows), parameters["rope_theta"] ** -pairs / divisors)
        mscale = parameters.get(f"{name}_mscale")
        tables.append(np.cos(angles) * (computed if mscale is None else mscale))
    positions = np.arange(longer)
    far = {"sglang": positions > k, "vllm": np.full(longer, longer > k)}[engine]
    return np.concatenate(tables)[positions + k * far]


def ggml(options, file, pairs=8):
    """θ_i and the attention factor of ggml's rope_yarn, for options of a command line and what a
    file says where there is none."""
    kind = options.get("--rope-scaling", file["rope_type"])
    scale = float(options.get("--rope-scale", file.get("factor", 1)))
    base = float(options.get("--rope-freq-base", file["rope_theta"]))
    theta = base ** -(np.arange(pairs) / pairs)
    if kind != "yarn":
        return theta / scale, 1.0
    names = ("orig-ctx", "beta-fast", "beta-slow")
    length, *turns = (float(options[f"--yarn-{name}"]) for name in names)
    low, high = (pairs * np.log(length / (2 * np.pi * beta)) / np.log(base) for beta in turns)
    low, high = max(0, np.floor(low)), min(2 * pairs - 1, np.ceil(high))
    kept = 1 - np.clip((np.arange(pairs) - low) / max(0.001, high - low), 0, 1)
    return theta / scale * (1 - kept) + theta * kept, 1 + 0.1 * np.log(scale)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": L // 4}
METHODS = (TIME_REFERENCE, "yarn", PROPOSED, "dprope-covered", ORIGINAL)
STARTS = {
    "plain": ({}, None, (*METHODS, "ntk", "llama3")),
    "another key of its length": ({"max_sequence_length": L}, None, (TIME_REFERENCE,)),
    "scaled by its maker": ({"rope_parameters": YARN | {"rope_theta": 1e4}}, None, METHODS),
    "extended by longrope and an attention factor": (
        {},
        "dprope-covered",
        (*METHODS, "ntk", "llama3"),
    ),
    "extended by yarn": ({}, "yarn", METHODS),
    "extended by ntk": ({}, "ntk", METHODS),
    "extended by llama3": ({}, "llama3", METHODS),
}


@pytest.mark.parametrize(
    "start, method", [(start, method) for start in STARTS for method in STARTS[start][2]]
)
def test_files_served_so_are_the_extended_model_whatever_they_hold(tmp_path, start, method):
    options, first, _ = STARTS[start]
    source = tmp_path / "it's"
    model = random_model(**options)
    model.save_pretrained(source)
    if first:
        source = extend_checkpoint(source, tmp_path / "extended", first, 4)
    model = type(model).from_pretrained(source)
    before = AutoConfig.from_pretrained(source)
    expected = logits(extend(model, method, 2))
    rotary = model.model.rotary_emb
    theta = rotary.inv_freq.double().numpy()
    factor = rotary.attention_scaling
    vllm, sglang, llama = flags(source, before, model.config)
    assert vllm["serve"] == str(source) and sglang["--model-path"] == str(source)
    for flag, apply in APPLY:
        apply(config := AutoConfig.from_pretrained(source), json.loads((vllm | sglang)[flag]))
        assert config.max_position_embeddings == 2 * L
        assert getattr(config, "max_sequence_length", 2 * L) == 2 * L
        loaded = type(model).from_pretrained(source, config=config)
        assert torch.equal(logits(loaded), expected)
        if config.rope_parameters["rope_type"] == "longrope":
            engine = "vllm" if apply is vllm_sets else "sglang"
            cos = rotations(config.rope_parameters, 2 * L, engine)
            angles = np.outer(np.arange(2 * L), theta)
            assert cos == pytest.approx(factor * np.cos(angles), abs=1e-4)
    said = before.rope_parameters["rope_type"] in ("default", "linear", "yarn")
    known = model.config.rope_parameters["rope_type"] in ("default", "linear", "yarn")
    assert bool(llama) == (said and known)
    if llama:
        inv_freq, multiplied = ggml(llama, before.rope_parameters)
        assert theta == pytest.approx(inv_freq, rel=1e-6)
        assert factor == pytest.approx(multiplied) and llama["-c"] == str(2 * L)


def llava():
    text = transformers.LlamaConfig(**SIZES)
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    vision |= {"num_attention_heads": 2, "image_size": 16, "patch_size": 8, "projection_dim": 16}
    config = transformers.LlavaConfig(
        text_config=text, vision_config=transformers.CLIPVisionConfig(**vision)
    )
    torch.manual_seed(0)
    return transformers.LlavaForConditionalGeneration(config).eval()


OTHERS = {  # by model type: whether vLLM and SGLang are known to read its RoPE
    "LlavaConfig": (True, False),
    "MixtralConfig": (True, False),
    "StableLmConfig": (True, False),
    "Gemma3TextConfig": (True, False),
    "GPTNeoXConfig": (True, False),
    "Phi3Config": (True, False),
    "Qwen3Config": (True, True),
    "GptOssConfig": (False, False),  # vLLM reads YaRN's keys alone
    "CohereConfig": (False, False),  # rotates neighbours
    "Glm4Config": (False, False),
    "Qwen2VLConfig": (False, False),  # rotates by three positions
}


@pytest.mark.parametrize("architecture", OTHERS)
@pytest.mark.parametrize("method", [TIME_REFERENCE, "yarn", PROPOSED])
def test_an_engine_has_a_line_for_the_models_whose_rope_it_reads(tmp_path, architecture, method):
    made = {"LlavaConfig": llava, "Qwen2VLConfig": qwen2_vl}.get(architecture)
    model = made() if made else random_model(architecture, **FAMILIES[architecture])
    model.save_pretrained(tmp_path)
    before = AutoConfig.from_pretrained(tmp_path)
    expected = logits(extend(model, method, 2))
    vllm, sglang, _ = flags(tmp_path, before, model.config)
    assert (bool(vllm), bool(sglang)) == OTHERS[architecture]
    for flag, apply in APPLY:
        if given := (vllm | sglang).get(flag):
            apply(config := AutoConfig.from_pretrained(tmp_path), json.loads(given))
            assert config.get_text_config().max_position_embeddings == 2 * L
            loaded = type(model).from_pretrained(tmp_path, config=config)
            assert torch.equal(logits(loaded), expected)


def test_parameters_within_a_section_undo_what_an_export_holds_there(tmp_path):
    llava().save_pretrained(tmp_path / "source")
    extended = extend_checkpoint(tmp_path / "source", tmp_path / "once", "dprope-covered", 2)
    before = AutoConfig.from_pretrained(extended)
    model = extend(skeleton(AutoConfig.from_pretrained(extended)), PROPOSED, 2)
    vllm, _, _ = flags(extended, before, model.config)
    vllm_sets(before, json.loads(vllm["--hf-overrides"]))
    cos = rotations(before.text_config.rope_parameters, 2 * L, "vllm")
    assert cos[0] == pytest.approx(1)
