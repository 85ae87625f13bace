"""What a fine-tuning run needs, counted from the configuration alone: parameters, tokens, memory, hours."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from core.errors import InputError
from experiments.lab.scale import Training
from experiments.lab.training.loss import CHUNK_LOGITS

# Of an A100's dense bfloat16 peak. At 0.45 LLaMA2-7B at s = 2 takes the 6 hours on 8 A100 that the paper reports.
MFU = 0.45
PEAK = 312e12
LIVE_PARAMETERS = 1e9  # that DeepSpeed keeps gathered at a time, its default stage3_max_live_parameters


@dataclass(frozen=True)
class Plan:
    """A run to estimate: tokens of a sequence, steps, settings, GPUs and their memory in GB, FLOP utilisation."""

    length: int
    steps: int
    settings: Training
    gpus: int = 8
    memory: float = 80
    mfu: float = MFU


def parameters(config: PreTrainedConfig) -> int:
    """How many weights the model has, tied ones once; nothing is allocated."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


def memory(config: PreTrainedConfig, plan: Plan) -> dict[str, float]:
    """GB per GPU (10⁹ bytes) of each part, in bfloat16 with a float32 master copy.

    Several GPUs divide weights, gradients and optimizer states (ZeRO-3); a single one holds float32 weights, which
    autocast copies to bfloat16. Activations are counted for a Llama layer with a fused attention kernel.
    """
    count = parameters(config)
    width, layers, inner = config.hidden_size, config.num_hidden_layers, config.intermediate_size
    per_head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    query, key = per_head * config.num_attention_heads, per_head * heads
    tokens = plan.length * plan.settings.device_batch
    # Two norms (float32 input, bfloat16 before and after the weight); q and attention's output; k and v; the MLP's
    # gate, activation, up and product.
    layer = tokens * (2 * 8 * width + 2 * 2 * query + 2 * 2 * key + 4 * 2 * inner)
    loss = 4 * 2 * CHUNK_LOGITS + 4 * config.vocab_size * width + 3 * 2 * tokens * width
    if plan.gpus > 1:
        states = {"weights": 2 / plan.gpus, "gradients": 2 / plan.gpus, "optimizer": 12 / plan.gpus}
        working = {"gathered weights": 2 * min(count, LIVE_PARAMETERS)}
    else:
        states, working = {"weights": 4, "gradients": 4, "optimizer": 8}, {"bfloat16 copy": 2 * count}
    parts = {name: share * count for name, share in states.items()} | working
    if plan.settings.checkpointing:
        parts["activations, recomputed"] = layers * tokens * 2 * width + layer
    else:
        parts["activations"] = layers * layer
    return {name: size / 1e9 for name, size in (parts | {"loss": loss}).items()}


def hours(config: PreTrainedConfig, plan: Plan) -> float:
    """Wall-clock hours on A100s at the plan's utilisation of model FLOPs (6 per weight and token, and attention's)."""
    embedding = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    per_head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    attention = 6 * config.num_hidden_layers * per_head * config.num_attention_heads * plan.length
    per_token = 6 * (parameters(config) - embedding) + attention
    return per_token * _tokens(plan) / (plan.gpus * PEAK * plan.mfu) / 3600


def report(config: PreTrainedConfig, plan: Plan) -> str:
    """The estimate as text for a terminal.

    Raises:
        InputError: a plan that cannot be.
    """
    settings = plan.settings
    if plan.gpus < 1 or plan.memory <= 0 or not 0 < plan.mfu <= 1:
        raise InputError("plan for at least one GPU, memory above 0 GB and a utilisation within (0, 1].")
    if settings.batch % (settings.device_batch * plan.gpus):
        raise InputError(
            f"a batch of {settings.batch} sequences cannot be divided among {plan.gpus} GPUs with "
            f"{settings.device_batch} each at a time; choose another --batch, --device-batch or --gpus."
        )
    parts = memory(config, plan)
    needed = sum(parts.values())
    accumulated = settings.batch // (settings.device_batch * plan.gpus)
    lines = [
        f"parameters    {parameters(config):,}",
        f"tokens        {_tokens(plan):,} in {plan.steps:,} steps of {settings.batch} sequences of {plan.length:,}",
        f"each step     {plan.gpus} GPUs × {settings.device_batch} sequences × {accumulated} accumulated",
        f"memory        {needed:.1f} GB of {plan.memory:g} on each of {plan.gpus} GPUs"
        + (" (ZeRO-3)" if plan.gpus > 1 else ""),
        *(f"              {size:6.1f}  {name}" for name, size in parts.items()),
        f"expected      {hours(config, plan):.1f} hours, assuming A100s at {plan.mfu:.0%} of their bfloat16 peak",
    ]
    if needed > plan.memory:
        lines.append("does not fit: use more GPUs" + ("." if settings.checkpointing else ", or --checkpointing."))
    return "\n".join(lines)


def _tokens(plan: Plan) -> int:
    return plan.length * plan.settings.batch * plan.steps
