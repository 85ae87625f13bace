"""Estimate what a fine-tune needs from the configuration alone: parameters, tokens, memory, hours.

GB are 10⁹ bytes. No model is allocated. Everything is counted for Llama's layers without grouped
queries.
"""

from transformers import PreTrainedConfig

from core.errors import InputError
from core.huggingface.configuration import text_config
from core.huggingface.rotation import skeleton
from experiments.base_models.model import Training
from experiments.training.loss import CHUNK_LOGITS

# FLOP/s that training reaches on an A100 80GB SXM: a share of its peak in dense bfloat16 (NVIDIA's
# data sheet). At 0.45, LLaMA2-7B at s = 2 takes the 6 hours on 8 A100s that the paper reports.
MFU = 0.45
A100 = MFU * 312e12
# How many parameters DeepSpeed gathers at a time by default (stage3_max_live_parameters).
LIVE_PARAMETERS = 1e9


def parameters(config: PreTrainedConfig) -> int:
    """The number of weights; tied ones count once."""
    return skeleton(config, rotates=False).num_parameters()


def memory(
    config: PreTrainedConfig, tokens: int, checkpointing: bool, gpus: int
) -> dict[str, float]:
    """GB per GPU of each kind of tensor at the peak of training in bfloat16.

    GPUs divide what belongs to a weight: 2 bytes in bfloat16, 4 of a gradient that is summed in
    float32, and 12 of a float32 master copy with AdamW's two moments. A single GPU holds the same.

    Args:
        tokens: that each GPU takes at a time.
    """
    count = parameters(config)
    of_weights = {"weights": 2, "gradients": 4, "optimizer": 12}
    peak = {name: size * count / gpus for name, size in of_weights.items()}
    if gpus > 1:
        peak["gathered weights"] = 2 * min(count, LIVE_PARAMETERS)
    peak |= activations(config, tokens, checkpointing, autocast=gpus == 1)
    return {name: size / 1e9 for name, size in peak.items()}


def activations(
    config: PreTrainedConfig, tokens: int, checkpointing: bool, autocast: bool = False
) -> dict[str, float]:
    """Bytes that a forward and backward pass over `tokens` holds in bfloat16, besides weights and
    gradients.

    Counted for a fused attention kernel and for a loss that never holds all logits.

    Args:
        autocast: the weights are float32, and so is what a layer adds to.
    """
    config = text_config(config)
    width = config.hidden_size
    inner = getattr(config, "intermediate_size", None) or 4 * width
    # Two norms: in bfloat16, the input in float32, and what is before and after the weight. Under
    # autocast both of these are float32, and each of five matrices has its own bfloat16 copy of
    # what it multiplies. Then q, k, v and attention's output; the MLP's gate, activation, up and
    # product.
    norms, residual = (26, 4) if autocast else (16, 2)
    layer = kept = tokens * (norms * width + 4 * 2 * width + 4 * 2 * inner)
    # the gradients of the MLP's, the most that a backward pass holds at a time
    at_a_time = tokens * 3 * 2 * inner
    if checkpointing:
        kept = tokens * residual * width
        at_a_time += layer
    # Our loss holds CHUNK_LOGITS at a time, and Liger's kernel as many as there are hidden states.
    # Both sum the head's gradient in float32 in the forward pass, and keep a copy of it in bfloat16
    # for the backward pass.
    logits = 2 * 4 * max(CHUNK_LOGITS, tokens * width)
    head = (4 + 2) * config.vocab_size * width + 3 * 2 * tokens * width
    return {
        "activations": config.num_hidden_layers * kept + at_a_time,
        "loss": logits + head,
    }


def flops(config: PreTrainedConfig, tokens: int, length: int) -> float:
    """Floating-point operations to train on so many tokens, in sequences of `length`: 6 per weight
    and token, and attention's. An embedding that is only looked up has none."""
    multiplied = parameters(config)
    text = text_config(config)
    if not config.tie_word_embeddings:
        multiplied -= text.vocab_size * text.hidden_size
    attention = text.num_hidden_layers * text.hidden_size * length
    return 6.0 * (multiplied + attention) * tokens


def sharing(settings: Training, gpus: int) -> int:
    """The most of these GPUs that a batch can be divided among; all, if it can be among none."""
    able = (each for each in range(1, gpus + 1) if not settings.batch % _at_a_time(settings, each))
    return max(able, default=gpus)


def _at_a_time(settings: Training, processes: int) -> int:
    """How many sequences all processes take at a time."""
    return processes * max(min(settings.device_batch, settings.batch // processes), 1)


def device_batch(settings: Training, processes: int) -> int:
    """How many sequences each process takes at a time.

    Raises:
        InputError: the processes cannot divide the batch evenly.
    """
    together = _at_a_time(settings, processes)
    each = together // processes
    if settings.batch % together:
        raise InputError(
            f"a batch of {settings.batch} sequences cannot be divided among {processes} processes "
            f"with {each} each at "
            "a time; choose another --batch, --device-batch or number of GPUs."
        )
    return each


def plan(
    config: PreTrainedConfig, settings: Training, length: int, steps: int, gpus: int
) -> list[str]:
    """The lines that say what a training run takes on A100s.

    Args:
        length: tokens per sequence.
        gpus: how many; 0 leaves out memory and hours, as a CPU's are known from records alone.

    Raises:
        InputError: the GPUs cannot divide the batch evenly.
    """
    batch = settings.batch
    tokens = length * batch * steps
    lines = [
        f"parameters    {parameters(config):,}",
        f"tokens        {tokens:,} in {steps:,} steps of {batch} × {length:,}",
    ]
    if not gpus:
        return lines
    each = device_batch(settings, gpus)
    peak = memory(config, length * each, settings.checkpointing, gpus)
    hours = flops(config, tokens, length) / (gpus * A100) / 3600
    return [
        *lines,
        f"each step     {gpus} × {each} sequences × {batch // (each * gpus)} accumulated",
        f"memory        {sum(peak.values()):.1f} GB on each of {gpus} GPUs",
        *(f"              {size:6.1f}  {name}" for name, size in peak.items()),
        f"expected      {hours:.2g} hours on A100s at {MFU:.0%} of their bfloat16 peak",
    ]
