"""Stock RoPE whose frequencies follow the input's length: `dynamic`, and `longrope` with two different lists.

Transformers chooses them in each forward pass by that pass's last position, and `dynamic` keeps those of a long input
for shorter ones after it. Keys in one cache would then be rotated by different frequencies, and a score would depend on
what was read before. So an evaluation fixes them for each input.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def frequencies(model: nn.Module, length: int) -> bytes:
    """The frequencies for an input of `length` tokens of all embeddings that follow it; empty if none does."""
    return b"".join(_at(*each, length).cpu().numpy().tobytes() for each in _following(model))


@contextmanager
def fixed(model: nn.Module, length: int) -> Iterator[None]:
    """Inside the context, every pass has the frequencies of an input of `length` tokens."""
    before = []
    try:
        for rotary, layers, kind in list(_following(model)):
            name = "inv_freq" if layers is None else f"{layers}_inv_freq"
            before.append((rotary, name, getattr(rotary, name), rotary.rope_type))
            setattr(rotary, name, _at(rotary, layers, kind, length))
            rotary.rope_type = "default" if layers is None else {**rotary.rope_type, layers: "default"}
        yield
    finally:
        for rotary, name, buffer, kinds in reversed(before):
            setattr(rotary, name, buffer)
            rotary.rope_type = kinds


def _following(model: nn.Module) -> Iterator[tuple[nn.Module, str | None, str]]:
    """(embedding, layer type or None, rope_type) of those whose frequencies follow the input's length."""
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        for layers, kind in kinds.items() if isinstance(kinds, dict) else [(None, kinds)]:
            if kind in ("dynamic", "longrope"):
                yield module, layers, kind


def _at(rotary: nn.Module, layers: str | None, kind: str, length: int) -> torch.Tensor:
    device = next(rotary.buffers()).device
    return ROPE_INIT_FUNCTIONS[kind](rotary.config, device, seq_len=length, layer_type=layers)[0]
