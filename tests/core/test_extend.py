"""Extended in memory against a stock load of the export, across architectures, dtypes and casts."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM

from core.errors import InputError
from core.extend import export, extend
from core.huggingface.embedding import rope_geometry
from core.rope import METHODS, scale
from tests.models import random_model

TOKENS = torch.arange(300)[None].remainder(293) + 3  # past L' = 256, so that every length regime is met
ARCHITECTURES = {
    "LlamaConfig": {},
    "MistralConfig": {},
    "MixtralConfig": {"num_local_experts": 2},  # its head_dim defaults to None
    "Qwen2Config": {},
    "Qwen3Config": {"head_dim": 32},
    "Phi3Config": {"partial_rotary_factor": 0.5},
    "GPTNeoXConfig": {},  # rotates a quarter of the head
    "StableLmConfig": {},
    "CohereConfig": {},  # interleaved pairs
    "Gemma2Config": {"head_dim": 16},
    "Gemma3TextConfig": {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]},
    "Olmo2Config": {},
    "FalconConfig": {"alibi": False},
}


def logits(model, tokens=TOKENS):
    with torch.inference_mode():
        return model(tokens).logits


def rotaries(model):
    return [module for module in model.modules() if hasattr(module, "rope_type")]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_stock_load_of_an_export_gives_identical_logits(tmp_path, architecture, dtype):
    model = random_model(architecture, **ARCHITECTURES[architecture]).to(dtype)
    before = logits(model)
    extend(model, "yarn", 2)
    assert not torch.equal(logits(model), before)
    loaded = AutoModelForCausalLM.from_pretrained(export(model, tmp_path / "extended"), dtype=dtype).eval()
    for tokens in (TOKENS, TOKENS[:, :50]):
        assert torch.equal(logits(loaded, tokens), logits(model, tokens))
    assert loaded.config.get_text_config().max_position_embeddings == 256


@pytest.mark.parametrize("method", ["original", "pi", "yarn", "dprope"])
def test_the_model_rotates_by_the_scaled_frequencies(method):
    model = random_model()
    scaling = scale(rope_geometry(model), method, 4)
    (rotary,) = rotaries(extend(model, method, 4))
    position = torch.tensor([[0, 1, 77, 511]])
    cos, sin = rotary(torch.zeros(1, dtype=torch.float32), position)
    angles = np.outer([0, 1, 77, 511], scaling.inv_freq)
    assert cos[0, :, : angles.shape[1]].numpy() == pytest.approx(scaling.attention_factor * np.cos(angles), abs=1e-4)
    assert sin[0, :, angles.shape[1] :].numpy() == pytest.approx(scaling.attention_factor * np.sin(angles), abs=1e-4)


class _Operators(TorchDispatchMode):
    """Every operator that runs, with the shapes it runs on."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append((func, [tuple(given.shape) for given in args if isinstance(given, torch.Tensor)]))
        return func(*args, **kwargs or {})


def test_no_fixed_scaling_costs_more_than_pi():
    model, ran = random_model(), {}
    for method in [name for name, each in METHODS.items() if each.ready]:
        extend(model, method, 2)
        logits(model)  # the first call of a length builds what later ones find
        with _Operators() as operators:
            model(TOKENS, labels=TOKENS).loss.backward()
        ran[method] = operators.seen
        model.zero_grad()
    assert len(ran["pi"]) > 100
    assert all(operators == ran["pi"] for operators in ran.values())


def test_dprope_without_interpolation_is_the_original_model():
    model = random_model()
    before = logits(model, TOKENS[:, :120])
    assert torch.equal(logits(extend(model, "dprope", 2, n_hat=0), TOKENS[:, :120]), before)


@pytest.mark.parametrize(
    "cast",
    [
        lambda m: m.to(torch.bfloat16),
        lambda m: m.half(),
        lambda m: m.bfloat16().float(),
        lambda m: m.to("cpu", torch.float16),
        lambda m: m.to_empty(device="cpu"),
    ],
    ids=["to", "half", "there-and-back", "device", "to_empty"],
)
def test_inv_freq_stays_float32_under_every_cast(cast):
    model = extend(random_model(), "dprope", 2)
    expected = [buffer.clone() for rotary in rotaries(model) for buffer in rotary.buffers()]
    cast(model)
    kept = [buffer for rotary in rotaries(model) for buffer in rotary.buffers()]
    assert [buffer.dtype for buffer in kept] == [torch.float32] * len(kept)
    assert all(torch.equal(a, b) for a, b in zip(kept, expected))


def test_a_failed_export_leaves_nothing(tmp_path, monkeypatch):
    model = extend(random_model(), "pi", 2)
    monkeypatch.setattr("core.extend._unlike", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        export(model, tmp_path / "extended")
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_extended(tmp_path):
    moved = random_model()
    rotaries(moved)[0].inv_freq.mul_(0.5)
    with pytest.raises(InputError, match="only plain RoPE"):
        extend(moved, "pi", 2)
    shapeless = random_model()
    shapeless.config.max_position_embeddings = 0
    with pytest.raises(InputError, match="max_position_embeddings"):
        extend(shapeless, "pi", 2)
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="exists already"):
        export(random_model(), tmp_path / "taken")


def test_bad_options_leave_the_model_alone():
    model = random_model()
    before = logits(model)
    for method, factor, options in (("dprope", 2, {"n_hat": 3}), ("pi", 1, {}), ("what", 2, {})):
        with pytest.raises(InputError):
            extend(model, method, factor, **options)
    assert torch.equal(logits(model), before)
