"""Training at LLaMA2-7B's widths: the loss of its head by three codes, and steps of four of its layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from transformers import LlamaForCausalLM
from transformers.utils import is_flash_attn_2_available

from experiments.base_models.model import Training
from experiments.kit import load_model
from experiments.training import budget
from experiments.training import loss as training_loss
from tools.bench.gpu.kit import Bench, timed

LAYERS = 4
# Dense bfloat16 FLOP/s (NVIDIA's data sheets) by a part of the GPU's name; the first match counts.
PEAKS = {"H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "H200": 989e12, "A100": budget.PEAK}


# The sum over tokens from hidden [tokens, hidden size], weight [vocabulary, hidden size] and labels [tokens].
LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "plain": lambda hidden, weight, labels: F.cross_entropy(F.linear(hidden, weight).float(), labels, reduction="sum"),
    "chunked": lambda hidden, weight, labels: training_loss.chunked_loss(
        hidden, weight, None, labels, max(1, training_loss.CHUNK_LOGITS // len(weight))
    ),
    "liger": lambda hidden, weight, labels: training_loss.summed_loss(hidden, weight, None, labels),
}


def loss(bench: Bench) -> None:
    """The loss and its gradients: seconds, GB, and relative distances to plain code."""
    config, device = bench.config(1), torch.device(load_model.device())
    dtype = bench.dtype(torch.bfloat16)
    weight = (0.02 * torch.randn(config.vocab_size, config.hidden_size, device=device)).to(dtype).requires_grad_()
    for count in (32, 64) if bench.toy else (8192, 16384):
        hidden = torch.randn(count, config.hidden_size, device=device).to(dtype).requires_grad_()
        labels = bench.tokens(count).to(device)
        exact = None
        for name, way in LOSSES.items():
            what = f"loss and its gradients, {count} tokens"
            if name == "liger" and not training_loss.uses_liger(device):
                bench.add(what, "without a GPU" if find_spec("liger_kernel") else "not installed", "", name)
                continue
            work = partial(_with_gradients, way, hidden, weight, labels)
            seconds, peak = timed(work)
            bench.add(what, seconds, "s", name)
            bench.add(what, peak, "GB", name)
            values = work()
            exact = exact or values
            for of, value, expected in zip(("the loss", "d hidden", "d weight"), values, exact):
                apart = (value.float() - expected.float()).norm() / expected.float().norm()
                bench.add(f"{of}, {count} tokens, relative distance to plain", float(apart), "", name)
            hidden.grad = weight.grad = None


def _with_gradients(way, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    hidden.grad = weight.grad = None
    total = way(hidden, weight, labels)
    total.backward()
    return total.detach(), hidden.grad, weight.grad


def attention(bench: Bench) -> None:
    """A training step under SDPA and FlashAttention-2: tokens/s, GB, FLOP utilisation."""
    model = bench.build(LAYERS, torch.bfloat16).train()
    model.activation_checkpointing_enable({"use_reentrant": False})
    optimizer, head_loss = torch.optim.AdamW(model.parameters(), 1e-5, fused=True), training_loss.HeadLoss(model)

    def step(tokens: torch.Tensor) -> None:
        head_loss(model, {"input_ids": tokens}, tokens).div(tokens.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()

    step(bench.tokens(1, 64).to(model.device))  # allocates AdamW's moments
    for length in (64, 128) if bench.toy else (8192, 16384):
        for name in ("sdpa", "flash_attention_2"):
            what = f"training step, {LAYERS} layers, {length} tokens"
            if name == "flash_attention_2" and not is_flash_attn_2_available():
                bench.add(what, "not installed", "", name)
                continue
            model.set_attn_implementation(name)
            seconds, held = timed(partial(step, bench.tokens(1, length).to(model.device)))
            bench.add(what, length / seconds, "tokens/s", name)
            bench.add(what, held, "GB beside weights and moments", name)
            if peak():
                bench.add(what, 100 * flops(model, length) / seconds / peak(), "% of the bfloat16 peak", name)


def flops(model: LlamaForCausalLM, length: int) -> float:
    """A step's FLOPs as the dry run counts them: 6 per weight and token plus attention's, without recomputation."""
    return 3600 * budget.PEAK * budget.hours(model.config, budget.Plan(length, 1, Training(batch=1), gpus=1, mfu=1))


def peak() -> float | None:
    """This GPU's peak FLOP/s; None if it is not in the list."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return next((flops for known, flops in PEAKS.items() if known in name), None)
