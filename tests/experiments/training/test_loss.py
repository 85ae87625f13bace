"""The chunked loss is cross entropy, to the gradient."""

import os
import sys

import pytest
import torch
from torch.nn.functional import cross_entropy, linear

from experiments.training.loss import IGNORED, HeadLoss, chunked_loss, summed_loss
from tests.models import random_model
from tests.processes import fork, wait


def inputs(bias: bool, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    made = [
        torch.randn(*shape, generator=generator, dtype=dtype) for shape in ((23, 6), (11, 6), (11,))
    ]
    labels = torch.randint(11, (23,), generator=generator)
    labels[[0, 7, 8, 22]] = IGNORED
    hidden, weight, offset = [t.requires_grad_() for t in made]
    return hidden, weight, offset if bias else None, labels


@pytest.mark.parametrize(("chunk", "bias"), [(1, False), (4, True), (100, False)])
def test_loss_and_gradients_are_those_of_cross_entropy(chunk, bias):
    hidden, weight, offset, labels = inputs(bias)
    variables = [v for v in (hidden, weight, offset) if v is not None]
    ours = chunked_loss(hidden, weight, offset, labels, chunk)
    plain = cross_entropy(
        linear(hidden, weight, offset), labels, ignore_index=IGNORED, reduction="sum"
    )
    assert ours.item() == pytest.approx(plain.item(), rel=1e-6)
    for found, expected in zip(
        torch.autograd.grad(3 * ours, variables), torch.autograd.grad(3 * plain, variables)
    ):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_without_gradients_the_loss_is_the_same_and_keeps_none():
    values = inputs(bias=True)
    expected = chunked_loss(*values, chunk=4)
    with torch.no_grad():
        found = chunked_loss(*values, chunk=4)
    assert expected.requires_grad and not found.requires_grad
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_a_models_loss_and_gradients_are_its_own(tied):
    plain, ours = (random_model(tie_word_embeddings=tied, initializer_range=0.1) for _ in range(2))
    tokens = torch.randint(3, 300, (2, 40), generator=torch.Generator().manual_seed(1))
    labels = tokens.clone()
    labels[0, :9] = IGNORED
    count = (labels[:, 1:] != IGNORED).sum()
    expected = plain(tokens, labels=labels).loss * count
    expected.backward()
    found = HeadLoss(ours)(ours, {"input_ids": tokens}, labels)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    names = dict(plain.named_parameters())
    assert len(names) == len(dict(ours.named_parameters()))
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, names[name].grad, rtol=1e-4, atol=1e-4)


def test_a_model_that_caps_its_logits_is_computed_plainly():
    model = random_model("Gemma2Config", head_dim=16, final_logit_softcapping=3.0)
    tokens = torch.randint(3, 300, (1, 20), generator=torch.Generator().manual_seed(1))
    expected = model(tokens, labels=tokens).loss * 19
    loss = HeadLoss(model)
    assert not loss.fused
    assert loss(model, {"input_ids": tokens}, tokens).item() == pytest.approx(
        expected.item(), rel=1e-6
    )


def losses_and_gradients(file):
    """By Liger's kernel in Triton's interpreter, and by ours."""
    for name in list(sys.modules):  # Triton decides at its import whether it interprets
        if name.startswith(("triton", "liger_kernel")) and not name.startswith("triton._C"):
            del sys.modules[name]
    both = []
    for interpreted in ("1", "0"):
        os.environ["TRITON_INTERPRET"] = interpreted
        *variables, labels = inputs(bias=True, dtype=torch.float32)
        loss = summed_loss(*variables, labels)
        both.append([loss.detach(), *torch.autograd.grad(0.5 * loss, variables)])
        assert "liger_kernel.ops.fused_linear_cross_entropy" in sys.modules
    torch.save(both, file)


def test_ligers_kernel_computes_the_same(tmp_path):
    """On a CPU by Triton's interpreter, in a process of its own: with ignored labels and a bias."""
    assert wait(fork(lambda: losses_and_gradients(tmp_path / "both.pt"))) == 0
    ligers, ours = torch.load(tmp_path / "both.pt")
    assert len(ligers) == len(ours) == 4 and not torch.equal(ligers[1], ours[1])
    for one, other in zip(ligers, ours):
        assert other.any()
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
