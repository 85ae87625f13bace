"""The chunked loss is cross entropy, to the gradient."""

import os
import sys

import pytest
import torch
from torch.nn.functional import cross_entropy, linear
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from core.errors import InputError
from experiments.training import loss
from experiments.training.loss import IGNORED, ChunkedLoss, HeadLoss, summed_loss
from tests.core.huggingface.test_families import FAMILIES
from tests.models import random_model, tokens
from tests.processes import fork, wait


def inputs(dtype=torch.float64):
    """Hidden states [23, 6], the head's weight [11, 6], and labels of which four do not count."""
    generator = torch.Generator().manual_seed(0)
    variables = [
        torch.randn(*shape, generator=generator, dtype=dtype, requires_grad=True)
        for shape in ((23, 6), (11, 6))
    ]
    labels = torch.randint(11, (23,), generator=generator)
    labels[[0, 7, 8, 22]] = IGNORED
    return *variables, labels


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_loss_and_gradients_are_those_of_cross_entropy(chunk):
    hidden, weight, labels = inputs()
    ours = ChunkedLoss.apply(hidden, weight, labels, chunk)
    logits = linear(hidden, weight)
    plain = cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")
    assert ours.item() == pytest.approx(plain.item(), rel=1e-6)
    found = torch.autograd.grad(3 * ours, [hidden, weight])
    expected = torch.autograd.grad(3 * plain, [hidden, weight])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


class Largest(TorchDispatchMode):
    """Records how many elements the largest tensor has that any operation makes."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        sizes = [each.numel() for each in tree_leaves(made) if isinstance(each, torch.Tensor)]
        self.elements = max([self.elements, *sizes])
        return made


@pytest.mark.parametrize("tied", [False, True])
def test_a_models_loss_and_gradients_are_its_own_and_no_logits_are_held(tied, monkeypatch):
    monkeypatch.setattr(loss, "CHUNK_LOGITS", 8 * 300)
    plain = random_model(tie_word_embeddings=tied, initializer_range=0.1)
    ours = random_model(tie_word_embeddings=tied, initializer_range=0.1)
    ids = tokens(40, rows=2, seed=1)
    labels = ids.clone()
    labels[0, :9] = IGNORED
    count = (labels[:, 1:] != IGNORED).sum()
    expected = plain(ids, labels=labels).loss * count
    expected.backward()
    with Largest() as largest:
        found = HeadLoss(ours)(ours, {"input_ids": ids}, labels)
        found.backward()
    assert largest.elements < 2 * 40 * 300
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    gradients = {name: parameter.grad for name, parameter in plain.named_parameters()}
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "kind, sizes",
    [
        ("Gemma2Config", {"head_dim": 16, "final_logit_softcapping": 3.0}),
        ("FalconH1Config", FAMILIES["FalconH1Config"] | {"lm_head_multiplier": 0.5}),
        ("PhiConfig", {}),
    ],
)
def test_a_model_that_caps_its_logits_or_has_a_bias_is_computed_plainly(kind, sizes):
    model = random_model(kind, **sizes)
    ids = tokens(20, seed=1)
    expected = model(ids, labels=ids).loss * 19
    computed = HeadLoss(model)
    assert not computed.fused
    found = computed(model, {"input_ids": ids}, ids)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)


def test_a_class_that_changes_its_logits_by_an_unknown_setting_is_refused(monkeypatch):
    model = random_model("GraniteConfig", logits_scaling=8.0)
    with monkeypatch.context() as patched:
        patched.setattr(model.config, "logits_scaling", 0.0)
        computed = HeadLoss(model)
    ids = tokens(20)
    with pytest.raises(InputError, match="GraniteForCausalLM"):
        computed(model, {"input_ids": ids}, ids)


def losses_and_gradients(file):
    """By Liger's kernel in Triton's interpreter, and by ours."""
    for name in list(sys.modules):  # Triton decides at its import whether it interprets
        if name.startswith(("triton", "liger_kernel")) and not name.startswith("triton._C"):
            del sys.modules[name]
    os.environ["TRITON_INTERPRET"] = "1"
    both = []
    for by_liger in (True, False):
        loss.uses_liger = lambda _, by_liger=by_liger: by_liger
        *variables, labels = inputs(torch.float32)
        total = summed_loss(*variables, labels)
        both.append([total.detach(), *torch.autograd.grad(0.5 * total, variables)])
        assert "liger_kernel.ops.fused_linear_cross_entropy" in sys.modules
    torch.save(both, file)


def test_ligers_kernel_computes_the_same(tmp_path):
    """On a CPU by Triton's interpreter, in a process of its own: with ignored labels."""
    assert wait(fork(lambda: losses_and_gradients(tmp_path / "both.pt"))) == 0
    ligers, ours = torch.load(tmp_path / "both.pt")
    assert not torch.equal(ligers[1], ours[1])  # which is to the bit what one kernel gives twice
    assert all(other.any() for other in ours)
    torch.testing.assert_close(ligers, ours, rtol=1e-5, atol=1e-5)
