"""Estimate what a fine-tune needs from the configuration alone: parameters, tokens, memory, hours.

GB are 10⁹ bytes. No model is allocated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from core.errors import InputError
from core.geometry import RopeGeometry, RopeScaling
from experiments.base_models.model import Training
from experiments.training.loss import CHUNK_LOGITS

# FLOP/s that training reaches on an A100 80GB SXM: a share of its peak in dense bfloat16 (NVIDIA's
# data sheet). At 0.45, LLaMA2-7B at s = 2 takes the 6 hours on 8 A100s that the paper reports.
MFU = 0.45
A100 = MFU * 312e12
FILLED = 0.85  # the share of a GPU's memory that a run may fill safely

# DeepSpeed's defaults: how many parameters are gathered at a time (stage3_max_live_parameters) and
# updated at a time (sub_group_size).
LIVE_PARAMETERS = 1e9
SUB_GROUP = 1e9


@dataclass(frozen=True)
class Sizes:
    """A model's sizes.

    Attributes:
        parameters: the number of weights; tied ones count once.
        multiplied: the weights that every token is multiplied by: all except an embedding that is
            only looked up.
        width, inner: the widths of the residual stream and of the MLP.
        query, key: the widths of all heads' queries and of all heads' keys.
    """

    parameters: int
    multiplied: int
    vocabulary: int
    layers: int
    width: int
    inner: int
    query: int
    key: int


def sizes(config: PreTrainedConfig) -> Sizes:
    """The sizes of a Llama-like model."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    width = config.hidden_size
    per_head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    return Sizes(
        parameters=count,
        multiplied=count - (0 if config.tie_word_embeddings else config.vocab_size * width),
        vocabulary=config.vocab_size,
        layers=config.num_hidden_layers,
        width=width,
        inner=getattr(config, "intermediate_size", None) or 4 * width,
        query=per_head * config.num_attention_heads,
        key=per_head * key_heads,
    )


def memory(size: Sizes, settings: Training, length: int, gpus: int) -> dict[str, float]:
    """GB per GPU of each kind of tensor at the peak of training, in bfloat16 with a float32 master
    copy.

    Several GPUs divide weights, gradients and optimizer states (ZeRO-3), with gradients summed in
    float32. A single GPU holds float32 weights, which autocast copies to bfloat16.

    Args:
        length: tokens per sequence.
    """
    count = size.parameters
    tokens = length * settings.device_batch
    passes = activations(size, tokens, settings.checkpointing, autocast=gpus == 1)
    if gpus > 1:
        states = {"weights": 2 / gpus, "gradients": 4 / gpus, "optimizer": 12 / gpus}
        passes |= {"gathered weights": 2 * min(count, LIVE_PARAMETERS)}
        # A copy of the gradients, and AdamW's denominator.
        update = {"update": 2 * 4 * min(count / gpus, SUB_GROUP)}
    else:
        states = {"weights": 4, "gradients": 4, "optimizer": 8}
        update = {}
        passes |= {"bfloat16 copy": 2 * count}
    held = {name: share * count for name, share in states.items()}
    peak = held | max(passes, update, key=lambda phase: sum(phase.values()))
    return {name: size / 1e9 for name, size in peak.items()}


def activations(
    size: Sizes, tokens: int, checkpointing: bool, autocast: bool = False
) -> dict[str, float]:
    """Bytes that a forward and backward pass over `tokens` holds in bfloat16, besides weights and
    gradients.

    Counted for Llama layers with a fused attention kernel and for a loss that never holds all
    logits.

    Args:
        autocast: the weights are float32, and so is what a layer adds to.
    """
    # Two norms: in bfloat16, the input in float32, and what is before and after the weight. Under
    # autocast both of these are float32, and each of five matrices has its own bfloat16 copy of
    # what it multiplies. Then q and attention's output; k and v; the MLP's gate, activation, up and
    # product.
    norms, residual = (26, 4) if autocast else (16, 2)
    layer = tokens * (
        norms * size.width + 2 * 2 * size.query + 2 * 2 * size.key + 4 * 2 * size.inner
    )
    # the MLP's, the most that a backward pass holds at a time
    gradients = tokens * 3 * 2 * size.inner
    # Our loss holds CHUNK_LOGITS at a time, and Liger's kernel as many as there are hidden states.
    # Both sum the head's gradient in float32 in the forward pass, and keep a copy of it in bfloat16
    # for the backward pass.
    logits = 2 * 4 * max(CHUNK_LOGITS, tokens * size.width)
    loss = {"loss": logits + (4 + 2) * size.vocabulary * size.width + 3 * 2 * tokens * size.width}
    if checkpointing:
        return {
            "activations, recomputed": size.layers * tokens * residual * size.width
            + layer
            + gradients
        } | loss
    return {"activations": size.layers * layer + gradients} | loss


def smaller(settings: Training) -> Training | None:
    """The settings that take less memory than these, for a run that had too little; None if there
    are none."""
    if settings.device_batch > 1:
        at_most_half = range(settings.device_batch // 2, 0, -1)
        return replace(
            settings, device_batch=next(n for n in at_most_half if settings.batch % n == 0)
        )
    return None if settings.checkpointing else replace(settings, checkpointing=True)


def flops(size: Sizes, tokens: int, length: int) -> float:
    """Floating-point operations to train on so many tokens, in sequences of `length`: 6 per weight
    and token, and attention's."""
    each = 6 * size.multiplied + 6 * size.layers * size.query * length
    return float(each * tokens)


def device_batch(settings: Training, processes: int) -> int:
    """How many sequences each process takes at a time.

    Raises:
        InputError: the processes cannot divide the batch evenly.
    """
    each = max(min(settings.device_batch, settings.batch // processes), 1)
    if settings.batch % (each * processes):
        raise InputError(
            f"a batch of {settings.batch} sequences cannot be divided among {processes} processes "
            f"with {each} each at "
            "a time; choose another --batch, --device-batch or number of GPUs."
        )
    return each


def report(
    size: Sizes, settings: Training, length: int, steps: int, gpus: int, memory_of_each: float
) -> str:
    """What a training run takes, but for its time, as text for a terminal.

    Args:
        length: tokens per sequence.
        gpus: at least one.
        memory_of_each: GB of each GPU.

    Raises:
        InputError: the GPUs cannot divide the batch evenly.
    """
    tokens = length * settings.batch * steps
    each = device_batch(settings, gpus)
    peak = memory(size, replace(settings, device_batch=each), length, gpus)
    needed = sum(peak.values())
    kind = " (ZeRO-3)" if gpus > 1 else ""
    verdict = "fits"
    if needed > FILLED * memory_of_each:
        verdict = (
            f"fills more than {FILLED:.0%}; more --gpus, a smaller --device-batch or "
            f"--checkpointing take less"
        )
    lines = [
        f"parameters    {size.parameters:,}",
        f"tokens        {tokens:,} in {steps:,} steps of {settings.batch} sequences of {length:,}",
        f"each step     {gpus} × {each} sequences × {settings.batch // (each * gpus)} accumulated",
        f"memory        {needed:.1f} GB of {memory_of_each:g} on each of {gpus} GPUs{kind}: "
        f"{verdict}",
        *(f"              {size_gb:6.1f}  {name}" for name, size_gb in peak.items()),
    ]
    return "\n".join(lines)


def pairs(geometry: RopeGeometry, scaling: RopeScaling, factor: float) -> str:
    """Which pairs are interpolated; of a blend, how many are divided by what."""
    divisors = geometry.inv_freq / scaling.inv_freq
    by_one = np.isclose(divisors, 1)
    by_s = np.isclose(divisors, factor) & ~by_one
    between = divisors[~by_one & ~by_s]
    count = len(divisors)
    if len(between):
        return (
            f"{by_one.sum()} of {count} pairs are divided by 1, {by_s.sum()} by s = {factor:g}, "
            f"{len(between)} by {between.min():.3g} to {between.max():.3g}"
        )
    if not by_s.any():
        return f"none of {count} pairs is interpolated"
    return f"pairs {_ranges(np.flatnonzero(by_s).tolist())} of {count} are interpolated"


def _ranges(numbers: list[int]) -> str:
    """Ascending whole numbers as ranges, such as "3–5, 9"."""
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    spans = zip(firsts, lasts, strict=True)
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in spans)
