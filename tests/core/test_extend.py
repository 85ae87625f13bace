"""Extended in memory: what a scaling costs, what a cast leaves, and what is refused."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

from core.errors import InputError
from core.extend import export, extend
from core.rope import METHODS, PROPOSED, TIME_REFERENCE
from tests.models import checkpoint, random_model

TOKENS = torch.arange(3, 43)[None]


def rotaries(model):
    return [module for module in model.modules() if hasattr(module, "rope_type")]


class _Operators(TorchDispatchMode):
    """Every operator that runs, with the shapes it runs on."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append((func, [tuple(value.shape) for value in args if isinstance(value, torch.Tensor)]))
        return func(*args, **kwargs or {})


def test_no_fixed_scaling_costs_more_than_pi():
    model, ran = random_model(), {}
    for method in [name for name, each in METHODS.items() if each.ready]:
        extend(model, method, 2)
        model(TOKENS)  # the first call of a length builds what later ones find
        with _Operators() as operators:
            model(TOKENS, labels=TOKENS).loss.backward()
        ran[method] = operators.seen
        model.zero_grad()
    assert len(ran[TIME_REFERENCE]) > 100
    assert all(operators == ran[TIME_REFERENCE] for operators in ran.values())


def test_dprope_without_interpolation_is_the_original_model():
    model = random_model()
    before = model(TOKENS).logits
    assert torch.equal(extend(model, PROPOSED, 2, n_hat=0)(TOKENS).logits, before)


def test_frequencies_stay_float32_under_every_cast():
    model = extend(random_model(), PROPOSED, 2)
    expected = [buffer.clone() for rotary in rotaries(model) for buffer in rotary.buffers()]
    for cast in (
        lambda: model.to(torch.bfloat16),
        lambda: model.half(),
        lambda: model.bfloat16().float(),
        lambda: model.to("cpu", torch.float16),
        lambda: model.to_empty(device="cpu"),
    ):
        cast()
        kept = [buffer for rotary in rotaries(model) for buffer in rotary.buffers()]
        assert [buffer.dtype for buffer in kept] == [torch.float32] * len(kept)
        assert all(torch.equal(a, b) for a, b in zip(kept, expected))


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
    moved, shapeless = random_model(), random_model()
    rotaries(moved)[0].inv_freq.mul_(0.5)
    shapeless.config.max_position_embeddings = 0
    for model, says in ((moved, "only plain RoPE"), (shapeless, "max_position_embeddings")):
        with pytest.raises(InputError, match=says):
            extend(model, TIME_REFERENCE, 2)
