"""Training steps that recompute activations, as before, and that keep them: LLaMA2-7B's widths, and SmolLM2."""

from __future__ import annotations

from functools import partial

import torch

from experiments.kit.base_model import attention
from experiments.training.loss import HeadLoss
from tools.bench.kit import SMALL, WIDTHS, Bench, timed


def steps(bench: Bench) -> None:
    """A training step: tokens/s and GB."""
    # Weights in bfloat16, as under ZeRO-3; and in float32 under autocast, as on one GPU.
    for name, layers, dtype, sequences in ((WIDTHS, 4, torch.bfloat16, 1), (SMALL, 30, torch.float32, 4)):
        model = bench.build(layers, dtype, name).train()
        model.set_attn_implementation(attention("bfloat16") or "sdpa")
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
