"""The kernel for CPUs is attention, to the gradient, and a model trains with it as with PyTorch's
own."""

import shutil

import pytest
import torch
from torch import library
from torch.nn.functional import scaled_dot_product_attention
from torch.utils import cpp_extension

from core.extend import extend
from experiments.base_models.model import Training
from experiments.training import attention
from experiments.training.trainer import Trainer, training_arguments
from tests.core.huggingface.test_families import FAMILIES, LINEAR, WINDOWED
from tests.models import random_model, tokens

LENGTH = 2 * attention.BLOCK
needs_kernel = pytest.mark.skipif(
    not attention.fits(LENGTH),
    reason="no compiler, or a CPU without bfloat16",
)


def relative(found, expected):
    return ((found.float() - expected).norm() / expected.norm()).item()


@needs_kernel
def test_the_ninja_that_was_installed_with_torch_is_found(monkeypatch, tmp_path):
    (tmp_path / "c++").symlink_to(shutil.which("c++"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert attention.fits(LENGTH)


@needs_kernel
@pytest.mark.parametrize(
    "batch, heads, groups, head_dim", [(1, 4, 4, 32), (2, 6, 2, 64), (1, 3, 1, 128)]
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
    asked = {"is_causal": True, "enable_gqa": True, "scale": 0.3}
    expected = scaled_dot_product_attention(*exact, **asked)
    kernel = attention.kernel(LENGTH)
    found = kernel.attend(*ours, **asked)
    assert kernel.used
    gradients = torch.autograd.grad(found, ours, direction)
    exact_gradients = torch.autograd.grad(expected, exact, direction.float())
    for one, other in zip((found, *gradients), (expected, *exact_gradients), strict=True):
        assert one.dtype == torch.bfloat16
        assert relative(one, other) < 1e-2


@needs_kernel
def test_what_a_killed_compilation_left_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    left = tmp_path / "dprope_attention" / "lock"
    left.parent.mkdir()
    left.touch()
    compiled = []
    monkeypatch.setattr(cpp_extension, "load", lambda *_, **__: compiled.append(left.exists()))
    monkeypatch.setattr(library, "register_autograd", lambda *_, **__: None)
    attention._compiled.__wrapped__()
    assert compiled == [False]


@needs_kernel
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_model_trains_as_with_pytorchs_attention(checkpointing, tmp_path, monkeypatch):
    """The losses of two steps, of which the second follows from the gradients of the first."""

    def losses(installed):
        model = random_model(head_dim=32, initializer_range=0.1)
        if not installed:
            monkeypatch.setattr(attention, "kernel", lambda length: None)
        settings = Training(
            batch=1, learning_rate=1e-3, dtype="bfloat16", checkpointing=checkpointing
        )
        data = [{"input_ids": each, "labels": each} for each in tokens(LENGTH, 3, seed=1)]
        arguments = training_arguments(settings, 3, 0, tmp_path / str(installed))
        trainer = Trainer(model, arguments, data, facts={})
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
    attention.kernel(LENGTH)
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
    assert attention.kernel(LENGTH) is None
    assert "no header" in capsys.readouterr().err


def test_sequences_that_do_not_divide_into_blocks_do_not_fit():
    assert not attention.fits(LENGTH - 1)


OTHERS = {
    "not causal": {"is_causal": False},
    "a mask": {"is_causal": False, "attn_mask": torch.ones(LENGTH, LENGTH).tril().bool()},
    "dropout": {"dropout_p": 0.5},
    "a scale below 0": {"scale": -0.3},
    "float32": {"dtype": torch.float32},
    "other values": {"of_values": (1, 2, LENGTH, 64)},
    "fewer queries": {"of_queries": (1, 4, 1, 32)},
    "no block": {"of_queries": (1, 4, 100, 32), "of_values": (1, 2, 100, 32)},
    "a small head": {"of_queries": (1, 4, LENGTH, 16), "of_values": (1, 2, LENGTH, 16)},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_attention_is_pytorchs(kind):
    """Its function gets what the call says, so the same values come of it."""
    asked = {"is_causal": True, "enable_gqa": True} | OTHERS[kind]
    of_queries = asked.pop("of_queries", (1, 4, LENGTH, 32))
    of_values = asked.pop("of_values", (1, 2, LENGTH, 32))
    of_keys = (*of_values[:3], of_queries[3])
    dtype = asked.pop("dtype", torch.bfloat16)
    generator = torch.Generator().manual_seed(0)
    tensors = [
        torch.randn(shape, generator=generator).to(dtype)
        for shape in (of_queries, of_keys, of_values)
    ]
    kernel = attention.Kernel()
    torch.manual_seed(0)
    expected = scaled_dot_product_attention(*tensors, **asked)
    torch.manual_seed(0)
    with kernel.installed():
        found = torch.nn.functional.scaled_dot_product_attention(*tensors, **asked)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    assert not kernel.used
    assert torch.nn.functional.scaled_dot_product_attention is scaled_dot_product_attention


WIDE = {"hidden_size": 128}  # so that heads have 32 dimensions
# By what a layer attends: the kernel in all or some of them, PyTorch's function, or the class's
# own code. At random weights, whether attention is causal changes the loss by more than 0.01.
BY_KERNEL = {
    "Cohere": WIDE,
    "Gemma3Text": FAMILIES["Gemma3TextConfig"] | {"head_dim": 32},
    "Granite": WIDE | {"attention_multiplier": 0.1, "logits_scaling": 8.0},
    "Llama": {"head_dim": 32},
    "Mistral": {"head_dim": 32, "sliding_window": 4096},
    "Phi": WIDE,
}
BY_PYTORCH = {
    "DeepseekV3": FAMILIES["DeepseekV3Config"],
    "Falcon": WIDE | {"alibi": False},
    "FalconH1": FAMILIES["FalconH1Config"] | {"lm_head_multiplier": 0.5},
    "Gemma3Text": {"head_dim": 32, **WINDOWED, "use_bidirectional_attention": True},
    "Lfm2": FAMILIES["Lfm2Config"],
    "Llama": {"head_dim": 32, "is_causal": False},
    "MiniMax": FAMILIES["MiniMaxConfig"],
    "Qwen3_5Text": LINEAR,
}
BY_ITSELF = {
    "Gemma2": {"head_dim": 32, "query_pre_attn_scalar": 32},
    "GptOss": FAMILIES["GptOssConfig"] | {"head_dim": 32},
}
TABLE = [
    pytest.param(f"{name}Config", options, by, id=f"{name} by {by}")
    for by, of_these in {"sdpa_bfloat16": BY_KERNEL, "sdpa": BY_PYTORCH, "eager": BY_ITSELF}.items()
    for name, options in of_these.items()
]


@needs_kernel
@pytest.mark.parametrize("architecture, options, by", TABLE)
def test_the_first_loss_is_that_of_the_class_in_float32(architecture, options, by, tmp_path):
    model = extend(random_model(architecture, **options), "pi", 2)
    ids = tokens(LENGTH, seed=1)
    expected = model(ids, labels=ids, use_cache=False).loss
    settings = Training(batch=1, learning_rate=1e-3, dtype="bfloat16", checkpointing=True)
    data = [{"input_ids": ids[0], "labels": ids[0]}]
    trainer = Trainer(model, training_arguments(settings, 1, 0, tmp_path), data, facts={})
    trainer.train()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(expected.item(), abs=5e-3)
    assert trainer.ran_on()["attention"] == by
