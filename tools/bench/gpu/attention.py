"""A training step of four of LLaMA2-7B's layers under SDPA and FlashAttention-2: tokens/s, FLOP utilisation, GB."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version

import torch
from transformers import LlamaForCausalLM
from transformers.utils import is_flash_attn_2_available

from experiments.base_models.model import Training
from experiments.kit import command_line
from experiments.training import budget
from experiments.training.loss import HeadLoss
from tools.bench.gpu import kit

LAYERS = 4
# Dense bfloat16 FLOP/s (NVIDIA's data sheets) by a part of the GPU's name; the first match counts.
PEAKS = {"H100 PCIe": 756e12, "H100 NVL": 835e12, "H100": 989e12, "H200": 989e12, "A100": budget.PEAK}


def peak() -> float | None:
    """This GPU's peak FLOP/s; None if it is not in the list."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return next((flops for known, flops in PEAKS.items() if known in name), None)


def step(model: LlamaForCausalLM, loss: HeadLoss, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> None:
    """Forward, backward and update on one sequence, tokens [1, length]."""
    loss(model, {"input_ids": tokens}, tokens).div(tokens.numel()).backward()
    optimizer.step()
    optimizer.zero_grad()


def main() -> None:
    part, _ = kit.start(__doc__)
    model = part.build(LAYERS, torch.bfloat16).train()
    model.activation_checkpointing_enable({"use_reentrant": False})
    optimizer, loss = torch.optim.AdamW(model.parameters(), 1e-5, fused=True), HeadLoss(model)
    step(model, loss, optimizer, part.tokens(1, 64).to(model.device))  # allocates AdamW's moments
    for length in (64, 128) if part.toy else (8192, 16384):
        tokens = part.tokens(1, length).to(model.device)
        # FLOPs as the dry run counts them: 6 per weight and token plus attention's, without recomputation.
        one_step = budget.Plan(length, 1, Training(batch=1), gpus=1, mfu=1)
        flops = budget.hours(model.config, one_step) * 3600 * budget.PEAK
        for attention in ("sdpa", "flash_attention_2"):
            what = f"training step, {LAYERS} layers, {length} tokens"
            if attention == "flash_attention_2" and not is_flash_attn_2_available():
                part.add(what, "not installed", "", attention)
                continue
            model.set_attn_implementation(attention)
            seconds, held = kit.timed(partial(step, model, loss, optimizer, tokens))
            versions = {"flash_attn": version("flash_attn")} if attention == "flash_attention_2" else {}
            part.add(what, length / seconds, "tokens/s", attention, **versions)
            part.add(what, held, "GB beside weights and moments", attention, **versions)
            if peak():
                part.add(what, 100 * flops / seconds / peak(), "% of the bfloat16 peak", attention, **versions)


if __name__ == "__main__":
    command_line.run(main)
