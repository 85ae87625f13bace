"""The commands that serve a checkpoint without a copy, taken as each engine takes them."""

import json
import shlex
from itertools import pairwise

import numpy as np
import pytest
import torch
from transformers import AutoConfig, PreTrainedConfig

from core.extend import extend
from core.huggingface.serving import commands
from tests.core.huggingface.test_families import FAMILIES, L, logits, qwen2_vl
from tests.models import random_model


def merge(config, changes):
    """As vLLM's ModelConfig applies --hf-overrides: within text_config it merges parameters,
    elsewhere it sets them."""
    if text := changes.pop("text_config", {}):
        config, held = config.text_config, config.text_config.rope_parameters
        text["rope_parameters"] = held | text["rope_parameters"]
    config.update(changes | text)


def ggml(options, base=1e4, pairs=8):
    """θ_i and the attention factor of ggml's rope_yarn, for options of a command line."""
    scale, base = (
        float(options.get("--rope-scale", 1)),
        float(options.get("--rope-freq-base", base)),
    )
    theta = base ** -(np.arange(pairs) / pairs)
    if options.get("--rope-scaling") != "yarn":
        return theta / scale, 1.0
    length, *turns = (
        float(options[f"--yarn-{name}"]) for name in ("orig-ctx", "beta-fast", "beta-slow")
    )
    low, high = (pairs * np.log(length / (2 * np.pi * beta)) / np.log(base) for beta in turns)
    low, high = max(0, np.floor(low)), min(2 * pairs - 1, np.ceil(high))
    kept = 1 - np.clip((np.arange(pairs) - low) / max(0.001, high - low), 0, 1)
    return theta / scale * (1 - kept) + theta * kept, 1 + 0.1 * np.log(scale)


@pytest.mark.parametrize(
    ("architecture", "method"),
    [("LlamaConfig", method) for method in ("pi", "yarn", "dprope", "ntk", "llama3", "original")]
    + [("Gemma3TextConfig", method) for method in ("pi", "yarn", "dprope")]
    + [
        ("Phi3Config", "yarn"),
        ("GPTNeoXConfig", "ntk"),
        ("MixtralConfig", "dprope"),
        ("Qwen2VLConfig", "pi"),
    ],
)
def test_unextended_weights_served_so_are_the_extended_model(tmp_path, architecture, method):
    composite, source = architecture == "Qwen2VLConfig", tmp_path / "it's"
    model = qwen2_vl() if composite else random_model(architecture, **FAMILIES[architecture])
    model.save_pretrained(source)
    before, expected = AutoConfig.from_pretrained(source), logits(extend(model, method, 2))
    lines = commands(str(source), before, model.config).split("\n")[1::2]
    vllm, sglang, llama = (dict(pairwise(shlex.split(line, comments=True))) for line in lines)
    assert (
        vllm["serve"] == str(source)
        and vllm["--max-model-len"] == str(2 * L)
        and bool(sglang) == (not composite)
    )
    taken = {"--hf-overrides": merge, "--json-model-override-args": PreTrainedConfig.update}
    for flag, apply in list(taken.items())[: 2 - composite]:
        apply(config := AutoConfig.from_pretrained(source), json.loads((vllm | sglang)[flag]))
        assert config.get_text_config().max_position_embeddings == 2 * L
        assert torch.equal(
            logits(type(model).from_pretrained(source, config=config).eval()), expected
        )
    assert bool(llama) == (architecture == "LlamaConfig" and method not in ("dprope", "llama3"))
    if llama:
        inv_freq, factor = ggml(llama)
        assert model.model.rotary_emb.inv_freq.tolist() == pytest.approx(inv_freq, rel=1e-6)
        assert model.model.rotary_emb.attention_scaling == pytest.approx(factor) and llama[
            "-c"
        ] == str(2 * L)
