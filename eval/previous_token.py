"""Heads that attend a fixed number of tokens back, and where they attend under another RoPE.

Most models have heads that attend to the previous token, or to one a few places back. Finding and copying earlier text
builds on them (Olsson et al., "In-context Learning and Induction Heads", 2022). They tell neighbouring positions apart
by the fastest pairs of RoPE. A method that interpolates those pairs should shift where they attend: for an interpolated
pair, a token s·k places back has the rotation k·θ that a token k places back had before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

BLOCK = 128  # consecutive queries that a bootstrap resamples together
FARTHEST = 8  # heads that attend further back than this do not count
SHARE = 1 / 3  # the share of a head's attention that must lie at one offset


@dataclass(frozen=True)
class Head:
    """A head of `layer` that attends mostly to the token `offset` places before the query."""

    layer: int
    head: int
    offset: int


@torch.inference_mode()
def attention_by_offset(model: PreTrainedModel, tokens: torch.Tensor, reach: int = FARTHEST) -> np.ndarray:
    """Mean attention to the token 0, 1, … `reach` places back, [layers, heads, reach + 1, blocks].

    Args:
        model: a causal language model; it runs with transformers' "eager" attention, which returns the weights.
        tokens: int64 [tokens]; the first block of 128 queries is left out, as too few tokens precede it.
        reach: at most 128.
    """
    chosen = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        layers = model(tokens[None].to(model.device), use_cache=False, output_attentions=True).attentions
    finally:
        model.set_attn_implementation(chosen)
    ends = len(tokens) // BLOCK * BLOCK
    found = []
    for (attention,) in layers:  # [heads, queries, keys]
        diagonals = [torch.diagonal(attention, -k, 1, 2)[:, BLOCK - k : ends - k] for k in range(reach + 1)]
        found.append(torch.stack(diagonals, 1).unflatten(2, (-1, BLOCK)).float().mean(3).cpu().numpy())
    return np.array(found)


def find(attention: np.ndarray) -> list[Head]:
    """The heads that give at least a third of their attention to one of the eight tokens before the query."""
    shares = attention.mean(axis=3)[:, :, : FARTHEST + 1]
    offsets = shares.argmax(axis=2)
    places = zip(*np.nonzero((shares.max(axis=2) >= SHARE) & (offsets > 0)))
    return [Head(int(layer), int(head), int(offsets[layer, head])) for layer, head in places]
