"""Estimate what a fine-tune needs from the configuration alone: parameters, tokens, memory, disk, hours.

GB are 10⁹ bytes. No model is allocated.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from core.errors import InputError
from core.rope import RopeGeometry, RopeScaling
from experiments.base_models.model import Training
from experiments.training.loss import CHUNK_LOGITS

PEAK = 312e12  # dense bfloat16 FLOP/s of an A100 80GB SXM (NVIDIA's data sheet)
# The share of the peak that training reaches. At 0.45, LLaMA2-7B at s = 2 takes the 6 hours on 8 A100s that the paper
# reports.
MFU = 0.45
TOKENISED = 365_000  # tokens per second and core (measured with LLaMA2's tokenizer)
FILLED = 0.85  # the share of a GPU's memory to fill when a device batch is chosen
PROCESS = 4  # GB of host memory for a process with its libraries and CUDA (assumed)

# DeepSpeed's defaults: how many parameters are gathered at a time (stage3_max_live_parameters) and updated at a time
# (sub_group_size).
LIVE_PARAMETERS = 1e9
SUB_GROUP = 1e9


@dataclass(frozen=True)
class Plan:
    """A run to estimate: tokens per sequence, steps, settings, GPUs, memory of each in GB, and FLOP utilisation."""

    length: int
    steps: int
    settings: Training
    gpus: int = 8
    memory: float = 80
    mfu: float = MFU

    @property
    def tokens(self) -> int:
        """The number of tokens that the run trains on."""
        return self.length * self.settings.batch * self.steps


@dataclass(frozen=True)
class Sizes:
    """A model's sizes.

    Attributes:
        parameters: the number of weights; tied ones count once.
        multiplied: the weights that every token is multiplied by: all except an embedding that is only looked up.
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


def parameters(config: PreTrainedConfig) -> int:
    """How many weights the model has; tied ones count once."""
    return _parameters(type(config), config.to_json_string())


@functools.lru_cache
def _parameters(kind: type[PreTrainedConfig], stated: str) -> int:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(kind.from_dict(json.loads(stated)))
    return sum(parameter.numel() for parameter in model.parameters())


def sizes(config: PreTrainedConfig) -> Sizes:
    """The sizes of a Llama-like model."""
    count, width = parameters(config), config.hidden_size
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


def memory(config: PreTrainedConfig, plan: Plan) -> dict[str, float]:
    """GB per GPU of each part at the run's peak, in bfloat16 with a float32 master copy.

    Several GPUs divide weights, gradients and optimizer states (ZeRO-3), with gradients summed in float32. A single GPU
    holds float32 weights, which autocast copies to bfloat16.
    """
    size, settings = sizes(config), plan.settings
    count = size.parameters
    passes = activations(size, plan.length * settings.device_batch, settings.checkpointing, autocast=plan.gpus == 1)
    if plan.gpus > 1:
        states = {"weights": 2 / plan.gpus, "gradients": 4 / plan.gpus, "optimizer": 12 / plan.gpus}
        passes |= {"gathered weights": 2 * min(count, LIVE_PARAMETERS)}
        # A copy of the gradients, and AdamW's denominator.
        update = {"update": 2 * 4 * min(count / plan.gpus, SUB_GROUP)}
    else:
        states, update = {"weights": 4, "gradients": 4, "optimizer": 8}, {}
        passes |= {"bfloat16 copy": 2 * count}
    held = {name: share * count for name, share in states.items()}
    parts = held | max(passes, update, key=lambda phase: sum(phase.values()))
    return {name: size / 1e9 for name, size in parts.items()}


def activations(size: Sizes, tokens: int, checkpointing: bool, autocast: bool = False) -> dict[str, float]:
    """Bytes that a forward and backward pass over `tokens` holds in bfloat16, besides weights and gradients.

    Counted for Llama layers with a fused attention kernel and for a loss that never holds all logits.

    Args:
        autocast: the weights are float32, and so is what a layer adds to.
    """
    # Two norms: in bfloat16, the input in float32, and what is before and after the weight. Under autocast both of
    # these are float32, and each of five matrices has its own bfloat16 copy of what it multiplies. Then q and
    # attention's output; k and v; the MLP's gate, activation, up and product.
    norms, residual = (26, 4) if autocast else (16, 2)
    layer = tokens * (norms * size.width + 2 * 2 * size.query + 2 * 2 * size.key + 4 * 2 * size.inner)
    gradients = tokens * 3 * 2 * size.inner  # the MLP's, the most that a backward pass holds at a time
    # Our loss holds CHUNK_LOGITS at a time, and Liger's kernel as many as there are hidden states. Both sum the head's
    # gradient in float32.
    logits = 2 * 4 * max(CHUNK_LOGITS, tokens * size.width)
    loss = {"loss": logits + 4 * size.vocabulary * size.width + 3 * 2 * tokens * size.width}
    if checkpointing:
        return {"activations, recomputed": size.layers * tokens * residual * size.width + layer + gradients} | loss
    return {"activations": size.layers * layer + gradients} | loss


def fitted(
    config: PreTrainedConfig, settings: Training, length: int, gpus: int, memory_of_each: float, decides: bool = False
) -> Training:
    """The settings with as many sequences per GPU at a time as fit in its memory, in GB.

    The number is a power of two that divides the batch evenly, at least 1.

    Args:
        decides: on one GPU, recompute activations only if not even one sequence's fit.
    """
    ways = (False, True) if decides and gpus == 1 else (settings.checkpointing,)
    counts = [2**i for i in range(settings.batch.bit_length()) if settings.batch % (2**i * gpus) == 0]
    for way in ways:
        for count in reversed(counts):
            tried = replace(settings, device_batch=count, checkpointing=way)
            if sum(memory(config, Plan(length, 1, tried, gpus)).values()) <= FILLED * memory_of_each:
                return tried
    return replace(settings, device_batch=1, checkpointing=ways[-1])


def smaller(settings: Training, decides: bool) -> Training | None:
    """The settings that take less memory than these, for a run that had too little; None if there are none.

    Args:
        decides: whether activations may be recomputed.
    """
    if settings.device_batch > 1:
        return replace(settings, device_batch=settings.device_batch // 2)
    return replace(settings, checkpointing=True) if decides and not settings.checkpointing else None


def hours(config: PreTrainedConfig, plan: Plan) -> float:
    """Wall-clock hours on A100s at the plan's FLOP utilisation; FLOPs are 6 per weight and token plus attention's."""
    size = sizes(config)
    per_token = 6 * size.multiplied + 6 * size.layers * size.query * plan.length
    return per_token * plan.tokens / (plan.gpus * PEAK * plan.mfu) / 3600


def disk(config: PreTrainedConfig, plan: Plan) -> dict[str, float]:
    """GB that a run writes: the last checkpoint, the next one while it is saved, the result, and the tokens.

    ZeRO-3 saves weights and AdamW's moments in float32, and the weights also in bfloat16: 14.1 bytes per parameter,
    measured.
    """
    count, several = parameters(config), plan.gpus > 1
    checkpoint = (14.1 if several else 12) * count
    parts = {
        "checkpoint": checkpoint,
        "checkpoint that replaces it": checkpoint,
        "result": (2 if several else 4) * count,
        "tokens": (2 if config.vocab_size <= 2**16 else 4) * plan.tokens,
    }
    return {name: size / 1e9 for name, size in parts.items()}


def host_memory(config: PreTrainedConfig, plan: Plan) -> float:
    """GB of the host's memory for all processes on it.

    Only the first process reads the checkpoint (under ZeRO-3 transformers gives the others tensors without data) and
    gathers the bfloat16 weights to save them. A single process reads the weights in float32 before they go to the GPU.
    """
    return PROCESS * plan.gpus + (2 if plan.gpus > 1 else 4) * parameters(config) / 1e9


def tokenising_hours(plan: Plan) -> float:
    """Hours of one core to tokenise the run's data, once for all runs that share it."""
    return plan.tokens / TOKENISED / 3600


def device_batch(settings: Training, processes: int) -> int:
    """How many sequences each process takes at a time.

    Raises:
        InputError: the processes cannot divide the batch evenly.
    """
    each = max(min(settings.device_batch, settings.batch // processes), 1)
    if settings.batch % (each * processes):
        able = [count for count in range(1, settings.batch + 1) if settings.batch % (each * count) == 0]
        near = [
            *[count for count in able if count < processes][-1:],
            *[count for count in able if count > processes][:1],
        ]
        others = f", or {' or '.join(map(str, near))} GPUs" if near else ""
        raise InputError(
            f"a batch of {settings.batch} sequences cannot be divided among {processes} processes with {each} each at "
            f"a time; choose another --batch or --device-batch{others}."
        )
    return each


def fits(config: PreTrainedConfig, plan: Plan) -> str:
    """Whether a run fits on its GPUs, in words; if not, or not safely, the fewest GPUs like these on which it does.

    Safe is to fill at most FILLED of the memory. Only numbers of GPUs that divide the batch evenly are considered, with
    one sequence on each at a time.
    """
    needed, single = sum(memory(config, plan).values()), replace(plan.settings, device_batch=1)
    divided = single.batch % plan.gpus == 0
    if divided and needed <= FILLED * plan.memory:
        return f"fits on {plan.gpus}"
    for count in range(1, single.batch + 1):
        filled = sum(memory(config, replace(plan, settings=single, gpus=count)).values()) / plan.memory
        if single.batch % count == 0 and filled <= FILLED:
            other = f"it fits on {count} of {plan.memory:g} GB"
            break
    else:
        other = f"it fits on no number of {plan.memory:g} GB"
    other += " with one sequence at a time" * (plan.settings.device_batch > 1)
    other += "" if single.checkpointing else ", or try --checkpointing"
    if needed > plan.memory or not divided:
        return f"does not {'fit on' if divided else 'divide among'} {plan.gpus}; {other}"
    return f"fits on {plan.gpus}, but fills more than {FILLED:.0%} and may run out of memory; {other}"


def decided(method: str, geometry: RopeGeometry, scaling: RopeScaling, factor: float) -> str:
    """What a method does to the pairs, in one line: which it interpolates, or by how much it divides them."""
    divisors = geometry.inv_freq / scaling.inv_freq
    chosen = np.flatnonzero(np.isclose(divisors, factor))
    warmer = "" if scaling.attention_factor == 1 else f", attention factor {scaling.attention_factor:.4g}"
    if len(chosen) + np.isclose(divisors, 1).sum() < geometry.pairs:
        return f"{method}: divides the pairs by {divisors.min():.4g} to {divisors.max():.4g}{warmer}"
    runs = np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1)
    pairs = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs if len(run))
    n_hat = f"n̂ = {2 * len(chosen)} of {geometry.head_dim}"
    return f"{method}, {n_hat}: interpolates {f'pairs {pairs}' if pairs else 'no pair'}{warmer}"


def report(config: PreTrainedConfig, plan: Plan) -> str:
    """The estimate of a training run as text for a terminal; InputError if the GPUs cannot divide the batch evenly."""
    settings = replace(plan.settings, device_batch=device_batch(plan.settings, plan.gpus))
    plan = replace(plan, settings=settings)
    parts, files = memory(config, plan), disk(config, plan)
    needed = sum(parts.values())
    accumulated = settings.batch // (settings.device_batch * plan.gpus)
    lines = [
        f"parameters    {parameters(config):,}",
        f"tokens        {plan.tokens:,} in {plan.steps:,} steps of {settings.batch} sequences of {plan.length:,}",
        f"each step     {plan.gpus} GPUs × {settings.device_batch} sequences × {accumulated} accumulated",
        f"memory        {needed:.1f} GB of {plan.memory:g} on each of {plan.gpus} GPUs"
        + (" (ZeRO-3)" if plan.gpus > 1 else ""),
        *(f"              {size:6.1f}  {name}" for name, size in parts.items()),
        f"disk          {sum(files.values()):.1f} GB",
        *(f"              {size:6.1f}  {name}" for name, size in files.items()),
        f"host memory   {host_memory(config, plan):.0f} GB",
        f"tokenising    {60 * tokenising_hours(plan):.0f} minutes of one core, divided among all cores; once",
        f"GPUs          {fits(config, plan)}",
        f"expected      {hours(config, plan):.1f} hours, assuming A100s at {plan.mfu:.0%} of their bfloat16 peak",
    ]
    return "\n".join(lines)
