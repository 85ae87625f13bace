"""Extended in memory: at a million tokens, after a cast, and what is refused."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, Qwen2Config

from core.errors import InputError
from core.extend import export, extend
from core.huggingface.rotation import skeleton
from core.rope import BASELINE, METHODS, PROPOSED, TIME_REFERENCE
from tests.models import checkpoint, random_model


def rotaries(model):
    return [module for module in model.modules() if hasattr(module, "rope_type")]


def test_the_name_of_a_model_extended_in_memory_loads_nothing_until_it_is_exported(tmp_path):
    """An adapter takes it for the name of its base."""
    model = AutoModelForCausalLM.from_pretrained(checkpoint(tmp_path / "source"))
    extend(extend(model, TIME_REFERENCE, 2), PROPOSED, 2)
    with pytest.raises(OSError):
        AutoConfig.from_pretrained(model.name_or_path)
    export(model, tmp_path / "export")
    assert AutoConfig.from_pretrained(model.name_or_path).max_position_embeddings == 256
    with pytest.raises(InputError, match="exists already"):
        export(model, tmp_path / "export")


def test_models_that_are_not_as_pre_trained_are_refused():
    moved = random_model()
    shapeless = random_model()
    rotaries(moved)[0].inv_freq.mul_(0.5)
    shapeless.config.max_position_embeddings = 0
    for model, says in (
        (moved, "other inverse frequencies"),
        (shapeless, "max_position_embeddings"),
    ):
        with pytest.raises(InputError, match=says):
            extend(model, TIME_REFERENCE, 2)


@pytest.mark.parametrize(
    "cast",
    [nn.Module.half, lambda model: model.bfloat16().float(), lambda m: m.to_empty(device="cpu")],
)
def test_frequencies_stay_float32_under_a_cast(cast):
    model = extend(random_model(), PROPOSED, 2)
    expected = [buffer.clone() for rotary in rotaries(model) for buffer in rotary.buffers()]
    cast(model)
    kept = [buffer for rotary in rotaries(model) for buffer in rotary.buffers()]
    assert all(
        a.dtype == torch.float32 and torch.equal(a, b) for a, b in zip(kept, expected, strict=True)
    )


LONG = {  # a maker's recipe, and what recipes leave between: L, s and the base
    "Qwen2.5-1M": (Qwen2Config, 1_010_000, 2, 1e7),
    "a small base": (LlamaConfig, 1_048_576, 4, 1e4),
    "a short context": (LlamaConfig, 32_768, 4, 1e5),
}


@pytest.mark.parametrize("name", LONG)
def test_a_million_tokens_are_extended_by_every_method(name):
    architecture, length, s, base = LONG[name]
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "vocab_size": 300,
        "head_dim": 128,
    }
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": length}
    model = skeleton(
        architecture(**sizes, **heads, rope_parameters={"rope_type": "default", "rope_theta": base})
    )
    for method in [name for name, each in METHODS.items() if each.ready and name != BASELINE] + [
        BASELINE
    ]:
        extend(model, method, s)
    pairs = np.arange(64)
    theta = base ** (-pairs / 64)
    (low, high) = (64 * np.log(length / turns / 2 / np.pi) / np.log(base) for turns in (32, 1))
    # YaRN's, as in its code
    ramp = np.clip((pairs - np.floor(low)) / (min(np.ceil(high), 127) - np.floor(low)), 0, 1)
    (rotary,) = rotaries(model)
    assert rotary.inv_freq.numpy() == pytest.approx(
        theta * (1 - ramp) + theta / s * ramp, rel=1e-6, abs=0
    )


class Lora(nn.Module):
    """As PEFT puts it in the place of a layer."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.lora_A = nn.Linear(64, 4, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_A(x).sum(-1, keepdim=True)


def adapted(model):
    attention = model.model.layers[0].self_attn
    attention.q_proj = Lora(attention.q_proj)
    return model


def untied(model):
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach() + 1)
    return model


def wider(model):
    model.lm_head = nn.Linear(64, 310, bias=False)
    return model


OTHERS = {
    "LoRA inside": (adapted, "merge an adapter first"),
    "wrapped by an adapter": (lambda model: nn.ModuleDict({"base_model": model}), "wraps a model"),
    "tied in its configuration alone": (untied, "lm_head.weight"),
    "resized by hand": (wider, "lm_head.weight"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_model_that_a_load_would_not_bring_back_is_not_exported(tmp_path, kind):
    change, says = OTHERS[kind]
    with pytest.raises(InputError, match=says):
        export(
            extend(change(random_model(tie_word_embeddings=change is untied)), TIME_REFERENCE, 2),
            tmp_path / "x",
        )
    assert not any(tmp_path.iterdir())
