"""Checkpoints whose RoPE their makers scaled: a method divides the inverse frequencies that they
have."""

import copy

import numpy as np
import pytest
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core.errors import InputError
from core.extend import export, extend, extend_checkpoint
from core.huggingface.embedding import rope_geometry
from core.rope import BASELINE, METHODS, ORIGINAL, PROPOSED, TIME_REFERENCE, scale
from tests.models import random_model

L = 512
PAIRS = 8
TOKENS = torch.arange(2 * L)[None].remainder(293) + 3
YARN = {
    "rope_type": "yarn",
    "rope_theta": 1e4,
    "factor": 4.0,
    "original_max_position_embeddings": L // 4,
}
# as Phi's, not in order
SHORT = [1.0] * PAIRS
LONG = [1.0, 1.01, 1.2, 2.5, 2.4, 3.0, 7.5, 8.0]
LISTS = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": SHORT, "long_factor": LONG}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 8.0}
ORIGINALLY = {"original_max_position_embeddings": L // 8}
MODELS = {
    "llama3": (
        "LlamaConfig",
        {"rope_parameters": LLAMA3 | {"original_max_position_embeddings": 64}},
    ),
    "linear": ("LlamaConfig", {"rope_parameters": LINEAR}),
    "yarn": ("Qwen2Config", {"rope_parameters": YARN}),
    "yarn beside the length before it": (
        "Qwen3Config",
        {"max_position_embeddings": L // 4, "rope_parameters": YARN},
    ),
    "longrope": ("LlamaConfig", {"rope_parameters": LISTS | ORIGINALLY | {"factor": 8.0}}),
    "longrope, Phi": (
        "Phi3Config",
        {"rope_parameters": LISTS, "sliding_window": None} | ORIGINALLY,
    ),
}


def model_of(name):
    architecture, options = MODELS[name]
    return random_model(
        architecture, **{"head_dim": 16, "max_position_embeddings": L} | copy.deepcopy(options)
    )


def logits(model):
    with torch.inference_mode():
        return model(TOKENS, use_cache=False).logits


def divisors(method, theta, interpolated):
    """What each θ_i is divided by at s = 2, written out."""
    if method != BASELINE:
        return np.where(interpolated, 2, 1)
    turns = L * theta / (2 * np.pi)
    low, high = max((turns >= 32).sum() - 1, 0), (turns > 1).sum()
    weight = np.clip((np.arange(PAIRS) - low) / (high - low), 0, 1)
    return 1 / (1 - weight + weight / 2)


@pytest.mark.parametrize("name", MODELS)
def test_a_scaled_checkpoint_is_extended_on_top_of_its_scaling(tmp_path, name):
    model = model_of(name)
    kind = name.split(",")[0].split()[0]
    theta, before = ROPE_INIT_FUNCTIONS[kind](copy.deepcopy(model.config), seq_len=L)
    theta = theta.double().numpy()
    plain = logits(model)
    geometry = rope_geometry(model)
    assert (geometry.rope_type, geometry.context_length) == (kind, L)
    model.save_pretrained(tmp_path / "source")
    positions = np.random.default_rng(0).integers(0, 2 * L, 20)
    for method, options in ((TIME_REFERENCE, {}), (BASELINE, {}), (PROPOSED, {"n_hat": 8})):
        in_memory = logits(extend(model, method, 2, **options))
        assert not torch.allclose(in_memory, plain, atol=1e-2)
        exported = extend_checkpoint(tmp_path / "source", tmp_path / method, method, 2, **options)
        loaded = type(model).from_pretrained(exported, dtype=model.dtype)
        assert torch.equal(logits(loaded), in_memory)
        rotary = next(module for module in loaded.modules() if hasattr(module, "rope_type"))
        at = torch.from_numpy(positions)[None]
        cos, _ = rotary(torch.zeros(1, 1), at)
        interpolated = scale(geometry, method, 2, **options).interpolated
        angles = np.outer(positions, theta / divisors(method, theta, interpolated))
        factor = before * (0.1 * np.log(2) + 1 if method == BASELINE else 1)
        np.testing.assert_allclose(cos[0, :, :PAIRS], factor * np.cos(angles), atol=1e-3)
        again = extend(loaded, ORIGINAL, 2)  # starts from what was there before
        torch.testing.assert_close(
            logits(again), plain, rtol=0, atol=2e-3 * plain.abs().max().item()
        )
        assert rope_geometry(again) == geometry
    for method in ("ntk", "ntk-critical", "clex"):
        with pytest.raises(InputError, match="follow from no base"):
            scale(geometry, method, 2)
        assert not METHODS[method].ready_for(geometry) and METHODS[BASELINE].ready_for(geometry)


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 8.0}


@pytest.mark.parametrize("rope", [LISTS | ORIGINALLY | {"factor": 8.0}, DYNAMIC])
def test_a_model_that_follows_the_length_is_exported_after_a_long_prompt_as_before(tmp_path, rope):
    model = random_model(
        "LlamaConfig", head_dim=16, max_position_embeddings=L, rope_parameters=rope
    )
    first = logits(model)  # of more than L tokens, whose frequencies the embedding keeps
    loaded = type(model).from_pretrained(export(model, tmp_path / "exported"), dtype=model.dtype)
    assert torch.equal(logits(loaded), first)
