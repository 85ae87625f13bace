"""A training step for long sequences is the plain one in what it computes, and another in what it holds."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from experiments import time_cost
from tests.models import random_model


class Largest(TorchDispatchMode):
    """Records how many elements the largest tensor has that any operation makes."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        sizes = [t.numel() for t in tree_leaves(made) if isinstance(t, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return made


def gradients(step, model, tokens, monkeypatch):
    """What a step leaves, kept from being cleared."""
    with monkeypatch.context() as patched:
        patched.setattr(model, "zero_grad", lambda **_: None)
        step(model, tokens)
    assert not model.training
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def test_it_has_the_plain_steps_gradients(monkeypatch):
    tokens = torch.randint(3, 300, (1, 40), generator=torch.Generator().manual_seed(1))
    plain, ours = random_model(), random_model()
    step, before = time_cost.training_step(ours, saving=True), ours(tokens).logits
    expected = gradients(time_cost.training_step(plain), plain, tokens, monkeypatch)
    saved = gradients(step, ours, tokens, monkeypatch)
    for name, gradient in expected.items():
        scaled = saved[name] * 40 / 39  # the mean of 39 predictions; that a step divides by 40 costs nothing
        torch.testing.assert_close(scaled, gradient, rtol=1e-4, atol=1e-5)
    assert torch.equal(ours(tokens).logits, before)  # a forward pass stays one


def test_it_never_holds_all_logits_and_recomputes_activations(monkeypatch):
    monkeypatch.setattr("experiments.training.loss.CHUNK_LOGITS", 8 * 300)
    narrow = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 1, "num_key_value_heads": 1}
    tokens, held, passes = torch.arange(3, 131)[None], {}, {}
    for name in ("plain", "saving"):
        model, count = random_model(**narrow, num_hidden_layers=1), []
        step = time_cost.training_step(model, saving=name == "saving")
        model.model.layers[0].mlp.register_forward_pre_hook(lambda *_, count=count: count.append(1))
        with Largest() as seen:
            step(model, tokens)
        held[name], passes[name] = seen.elements, len(count)
    assert held["plain"] >= 128 * 300 > 128 * 128 >= held["saving"] and passes == {"plain": 1, "saving": 2}
