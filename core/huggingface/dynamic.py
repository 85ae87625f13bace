"""RoPE whose frequencies follow the length of the input: stock `dynamic` and two-list `longrope`,
CLEX, and methods by length.

Transformers chooses them in each forward pass by that pass's last position, and `dynamic` keeps
those of a long input for shorter ones after it. Keys in one cache would then be rotated by
different frequencies, and a score would depend on what was read before. So an evaluation fixes them
for each input by :func:`at_length`.

An embedding of this project that follows the length has a function `for_length`: from a number of
tokens to the attributes, by name, that the embedding has for an input of so many.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

_FOLLOWING = ("dynamic", "longrope")


def scale_for(model: nn.Module, length: int) -> bytes:
    """What an input of `length` tokens makes of all embeddings that follow it; empty if none does.

    Inputs for which it is equal may share a batch or a cache.
    """
    values = [value for _, state in _following(model, length) for value in state.values()]
    return b"".join(
        x.cpu().numpy().tobytes() if torch.is_tensor(x) else repr(x).encode() for x in values
    )


@contextmanager
def at_length(model: nn.Module, length: int) -> Iterator[None]:
    """Inside the context, every evaluation pass has the frequencies of an input of `length` tokens.

    A model whose RoPE does not follow the length stays as it is.
    """
    before = []
    try:
        for rotary, wanted in list(_following(model, length)):
            before += [(rotary, name, getattr(rotary, name)) for name in wanted]
            for name, value in wanted.items():
                setattr(rotary, name, value)
        yield
    finally:
        for change in reversed(before):
            setattr(*change)


def state(rotary: nn.Module) -> dict:
    """An embedding's frequencies and attention factors by attribute, for all types of layers."""
    names = [*dict(rotary.named_buffers(recurse=False)), *vars(rotary)]
    return {
        name: getattr(rotary, name)
        for name in names
        if name.endswith(("inv_freq", "attention_scaling"))
    }


def _following(model: nn.Module, length: int) -> Iterator[tuple[nn.Module, dict]]:
    """(embedding, the attributes that it has for an input of `length` tokens) of those that follow
    the length."""
    for module in model.modules():
        if hasattr(module, "for_length"):
            yield module, module.for_length(length)
        kinds = getattr(module, "rope_type", None)
        of_layers = kinds if isinstance(kinds, dict) else {None: kinds}
        fixed = {
            layers: "default" if kind in _FOLLOWING else kind for layers, kind in of_layers.items()
        }
        for layers, kind in of_layers.items():
            if kind not in _FOLLOWING:
                continue
            device = next(module.buffers()).device
            inv_freq, _ = ROPE_INIT_FUNCTIONS[kind](
                module.config, device, seq_len=length, layer_type=layers
            )
            name = "inv_freq" if layers is None else f"{layers}_inv_freq"
            yield module, {name: inv_freq, "rope_type": fixed.get(None, fixed)}
            if layers is None and "long_mscale" in module.config.rope_parameters:
                yield module, {"config": _with_one_mscale(module.config, length)}


def _with_one_mscale(config: PreTrainedConfig, length: int) -> PreTrainedConfig:
    """A configuration whose two temperatures are both that of an input of `length` tokens.

    PhiMoE's class takes one of them from its configuration in each pass.
    """
    parameters = config.rope_parameters
    far = length > parameters["original_max_position_embeddings"]
    mscale = parameters["long_mscale" if far else "short_mscale"]
    result = copy.copy(config)
    result.rope_parameters = parameters | {"short_mscale": mscale, "long_mscale": mscale}
    return result
