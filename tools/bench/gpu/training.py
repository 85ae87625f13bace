"""Training steps that recompute activations, as before, and that keep them: LLaMA2-7B's widths, and SmolLM2."""

from __future__ import annotations

from functools import partial

import torch
from transformers import LlamaForCausalLM

from experiments.base_models.model import Training
from experiments.kit import base_model
from experiments.training import budget
from experiments.training.loss import HeadLoss
from tools.bench.gpu.kit import SMALL, WIDTHS, Bench, timed

# Dense bfloat16 FLOP/s (NVIDIA's data sheets) by a part of the GPU's name; the first match counts.
PEAKS = {"H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "H200": 989e12, "A100": budget.PEAK}


def steps(bench: Bench) -> None:
    """A training step: tokens/s, GB, FLOP utilisation."""
    # Weights in bfloat16, as under ZeRO-3; and in float32 under autocast, as on one GPU.
    for name, layers, dtype, sequences in ((WIDTHS, 4, torch.bfloat16, 1), (SMALL, 30, torch.float32, 4)):
        model = bench.build(layers, dtype, name).train()
        model.set_attn_implementation(base_model.attention("bfloat16") or "sdpa")
        optimizer, loss = torch.optim.AdamW(model.parameters(), 1e-5, fused=True), HeadLoss(model)

        def step(tokens: torch.Tensor, model=model, optimizer=optimizer, loss=loss) -> None:
            on_gpu = tokens.device.type == "cuda"
            with torch.autocast(tokens.device.type, torch.bfloat16, enabled=on_gpu and model.dtype == torch.float32):
                total = loss(model, {"input_ids": tokens}, tokens)
            total.div(tokens.numel()).backward()
            optimizer.step()
            optimizer.zero_grad()

        step(bench.tokens(1, 64).to(model.device))  # allocates AdamW's moments
        length = 64 if bench.toy else 16384
        what = f"training step, {layers} layers, {sequences} × {length} tokens"
        for engine, change in (
            ("recomputed", lambda model: model.activation_checkpointing_enable({"use_reentrant": False})),
            ("kept", lambda model: model.activation_checkpointing_disable()),
        ):
            change(model)
            seconds, held = timed(partial(step, bench.tokens(sequences, length).to(model.device)))
            bench.add(what, sequences * length / seconds, "tokens/s", engine, name)
            bench.add(what, held, "GB beside weights and moments", engine, name)
            if peak():
                share = 100 * flops(model, length) * sequences / seconds / peak()
                bench.add(what, share, "% of the bfloat16 peak", engine, name)


def flops(model: LlamaForCausalLM, length: int) -> float:
    """A step's FLOPs as the dry run counts them: 6 per weight and token plus attention's, without recomputation."""
    return 3600 * budget.PEAK * budget.hours(model.config, budget.Plan(length, 1, Training(batch=1), gpus=1, mfu=1))


def peak() -> float | None:
    """This GPU's peak FLOP/s; None if it is not in the list."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return next((flops for known, flops in PEAKS.items() if known in name), None)
