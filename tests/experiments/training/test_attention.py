"""The kernel for CPUs is attention, to the gradient, and a model trains with it as with PyTorch's
own."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from experiments.base_models.model import Training
from experiments.training import attention
from experiments.training.trainer import Trainer, training_arguments
from tests.models import random_model

LENGTH = 2 * attention.BLOCK
needs_kernel = pytest.mark.skipif(
    not attention.fits(random_model(head_dim=32), LENGTH),
    reason="no compiler, or a CPU without bfloat16",
)


def relative(found, expected):
    return ((found.float() - expected).norm() / expected.norm()).item()


@needs_kernel
@pytest.mark.parametrize(
    ("batch", "heads", "groups", "head_dim"), [(1, 4, 4, 32), (2, 6, 2, 64), (1, 3, 1, 128)]
)
def test_output_and_gradients_are_those_of_float32(batch, heads, groups, head_dim):
    generator = torch.Generator().manual_seed(0)

    def draw(count):
        shape = batch, count, 5 * attention.BLOCK, head_dim
        return torch.randn(shape, generator=generator).bfloat16()

    ours = [draw(heads), draw(groups), draw(groups)]
    direction = draw(heads)
    exact = [tensor.float().requires_grad_() for tensor in ours]
    for tensor in ours:
        tensor.requires_grad_()
    attention.install(random_model())
    expected = scaled_dot_product_attention(*exact, is_causal=True, enable_gqa=True, scale=0.3)
    with torch.autocast("cpu", torch.bfloat16):
        found = attention._attend(None, *ours, None, scaling=0.3)[0].transpose(1, 2)
    gradients = torch.autograd.grad(found, ours, direction)
    exact_gradients = torch.autograd.grad(expected, exact, direction.float())
    for one, other in zip((found, *gradients), (expected, *exact_gradients), strict=True):
        assert one.dtype == torch.bfloat16
        assert relative(one, other) < 1e-2


@needs_kernel
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_model_trains_as_with_pytorchs_attention(checkpointing, tmp_path):
    """The losses of two steps, of which the second follows from the gradients of the first."""

    def losses(installed):
        model = random_model(head_dim=32, initializer_range=0.1)
        if installed:
            attention.install(model)
        settings = Training(
            batch=1, learning_rate=1e-3, dtype="bfloat16", checkpointing=checkpointing
        )
        tokens = torch.randint(300, (3, LENGTH), generator=torch.Generator().manual_seed(1))
        data = [{"input_ids": each, "labels": each} for each in tokens]
        arguments = training_arguments(settings, 3, 0, tmp_path / str(installed))
        trainer = Trainer(model, arguments, data)
        trainer.train()
        assert trainer.ran_on()["attention"] == (attention.NAME if installed else "sdpa")
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    ours = losses(installed=True)
    plain = losses(installed=False)
    assert ours == pytest.approx(plain, rel=2e-3)
    assert ours != plain


@needs_kernel
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_what_is_not_finite_reaches_output_and_gradients(which, value):
    """So that training stops; the compiler may assume finite numbers."""
    attention.install(random_model())
    tensors = [torch.randn(2, LENGTH, 32).bfloat16() for _ in range(4)]
    tensors[which][0, 100, 3] = value
    *inputs, direction = tensors
    output, log_sums = torch.ops.dprope.attention(*inputs, 0.3)
    assert not output.isfinite().all()
    found = torch.ops.dprope.attention_backward(direction, *inputs, output, log_sums, 0.3)
    assert not found[0].isfinite().all()


@needs_kernel
def test_where_it_does_not_compile_a_note_says_that_pytorchs_is_used(monkeypatch, capsys):
    def broken():
        raise RuntimeError("no header")

    monkeypatch.setattr(attention, "_compiled", broken)
    model = random_model(head_dim=32)
    attention.install(model)
    assert model.config._attn_implementation == "sdpa"
    assert "no header" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "length"),
    [({}, LENGTH - 1), ({"head_dim": 16}, LENGTH), ({"attention_dropout": 0.1}, LENGTH)],
)
def test_what_does_not_fit_is_computed_by_pytorch(changes, length):
    assert not attention.fits(random_model(**{"head_dim": 32} | changes), length)
