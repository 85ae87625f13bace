"""A training step for long sequences: what it holds, beside the plain one."""

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


def test_it_never_holds_all_logits_and_recomputes_activations(monkeypatch):
    monkeypatch.setattr("experiments.training.loss.CHUNK_LOGITS", 8 * 300)
    narrow = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
    }
    tokens = torch.arange(3, 131)[None]
    held = {}
    passes = {}
    for name in ("plain", "saving"):
        model = random_model(**narrow, num_hidden_layers=1)
        count = []
        step = time_cost.training_step(model, saving=name == "saving")
        model.model.layers[0].mlp.register_forward_pre_hook(lambda *_, count=count: count.append(1))
        with Largest() as seen:
            step(model, tokens)
        held[name] = seen.elements
        passes[name] = len(count)
    assert held["plain"] >= 128 * 300 > 128 * 128 >= held["saving"] and passes == {
        "plain": 1,
        "saving": 2,
    }
