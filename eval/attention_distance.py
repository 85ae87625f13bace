"""How far back attention looks: the share of attention at each distance, without attention sinks.

A head with nothing to attend to puts its attention on the first tokens of a text, whatever they are and however far
away (Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023). Such attention is no evidence of
distance and would fill the farthest bins. So the first key is left out, and a query's attention to the others is
normalised to sum to 1. Xiao et al. found that models which saw no fixed first token in pre-training can need up to four
sinks; :class:`Found` reports how much attention the first keys took.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from core.errors import InputError, NonFiniteError

AT_A_TIME = 64  # queries of one layer whose attention is held at once
QUARTERS = 4
FIRST = 8  # first keys whose share is reported
_UNSEEN = "not every layer of this model attends through transformers' interface for SDPA"


@dataclass(frozen=True)
class Found:
    """Shares of attention in one text.

    Attributes:
        mass: attention by layer, quarter of the query positions and bin of distances: the mean over heads, summed over
            queries, float64 [layers, 4, bins].
        queries: how many queries were read in each quarter, [4].
        first_keys: the mean share of all attention, sinks included, on the keys 0 … 7, [8].
    """

    mass: np.ndarray
    queries: np.ndarray
    first_keys: np.ndarray


@torch.inference_mode()
def attention_by_distance(
    model: PreTrainedModel,
    tokens: torch.Tensor,
    edges: np.ndarray,
    queries: np.ndarray,
    sinks: int = 1,
    progress: Callable[[int], object] = lambda layers: None,
) -> Found:
    """Attention of the chosen queries by distance, from one pass over the text.

    Memory stays small: one layer's attention for 64 queries is held at a time.

    Args:
        model: a causal language model that uses transformers' attention interface, as most do.
        tokens: int64 [tokens].
        edges: the edges of the bins in tokens, ascending, from 0 to len(tokens) [bins + 1].
        queries: the query positions to read, [n]; each must come after the sinks and the first eight keys.
        sinks: how many of the first keys are left out.
        progress: called after each layer.

    Raises:
        InputError: the model does not use that interface, or a query is out of range.
        NonFiniteError: attention is not finite.
    """
    if len(queries) == 0 or min(queries) < max(sinks, FIRST) or max(queries) >= len(tokens):
        raise InputError(f"queries start at position {max(sinks, FIRST)}; give queries from there on within the text.")
    quarter = queries * QUARTERS // len(tokens)
    layers: list[np.ndarray] = []
    first = np.zeros(FIRST)

    def read(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, scaling: float) -> None:
        """Add a layer: query [heads, tokens, d], key [key heads, tokens, d]."""
        key = key.repeat_interleave(len(query) // len(key), dim=0)
        found = np.zeros((QUARTERS, len(edges) - 1))
        for start in range(0, len(queries), AT_A_TIME):
            rows = queries[start : start + AT_A_TIME]
            shares, leading = _shares(query[:, rows], key, rows, mask, scaling, sinks)
            np.add.at(found, quarter[start : start + AT_A_TIME], _binned(shares, rows, edges, sinks))
            first[:] += leading
        if not np.isfinite(found).all():
            raise NonFiniteError(f"the attention of layer {len(layers)} is not finite")
        layers.append(found)
        progress(1)

    with _watched(model, read):
        model.base_model(tokens[None].to(model.device), use_cache=False)
    if len(layers) != model.config.get_text_config().num_hidden_layers:
        raise InputError(f"{_UNSEEN}; give another model.")
    counts = np.bincount(quarter, minlength=QUARTERS)
    return Found(np.array(layers), counts, first / (len(queries) * len(layers)))


@contextlib.contextmanager
def _watched(model: PreTrainedModel, read: Callable) -> Iterator[None]:
    """Inside the context, `read` gets each layer's queries, keys and mask; attention itself is computed as usual."""
    chosen, plain = model.config._attn_implementation, ALL_ATTENTION_FUNCTIONS["sdpa"]

    def watching(module, query, key, value, attention_mask, *arguments, scaling=None, **others):
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        read(query[0], key[0], None if attention_mask is None else attention_mask[0, 0], scale)
        return plain(module, query, key, value, attention_mask, *arguments, scaling=scaling, **others)

    try:
        model.set_attn_implementation("sdpa")
    except ValueError as error:  # an architecture that has none
        raise InputError(f"{_UNSEEN}; give another model.") from error
    ALL_ATTENTION_FUNCTIONS["sdpa"] = watching
    try:
        yield
    finally:
        del ALL_ATTENTION_FUNCTIONS["sdpa"]
        model.set_attn_implementation(chosen)


def _shares(
    query: torch.Tensor, key: torch.Tensor, rows: np.ndarray, mask: torch.Tensor | None, scaling: float, sinks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means over heads: each row's attention to the keys after the sinks, [rows, keys], and the sum over rows of the
    attention to the first keys, [8].
    """
    logits = (query @ key.transpose(1, 2)).float() * scaling
    position = torch.arange(key.shape[1], device=key.device)
    at = torch.as_tensor(rows, device=key.device)
    seen = position <= at[:, None]
    if mask is not None and mask.dtype == torch.bool:  # a sliding window, besides causality
        seen = seen & mask[at][:, : len(position)]
    elif mask is not None:
        logits += mask[at][:, : len(position)]
    logits.masked_fill_(~seen, -torch.inf)
    leading = (logits[:, :, :FIRST] - logits.logsumexp(dim=2, keepdim=True)).exp().mean(dim=0).sum(dim=0)
    # The softmax over the remaining keys equals the whole softmax restricted to them and normalised.
    shares = logits[:, :, sinks:].softmax(dim=2).mean(dim=0)
    return shares.double().cpu().numpy(), leading.double().cpu().numpy()


def _binned(shares: np.ndarray, rows: np.ndarray, edges: np.ndarray, sinks: int) -> np.ndarray:
    """[rows, keys after the sinks] → [rows, bins], by the distance from each row's position."""
    up_to = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(shares, axis=1)], axis=1)
    # The number of keys up to and including the one `edge` tokens back; a bin ends where the next begins.
    place = np.clip(rows[:, None] + 1 - edges - sinks, 0, shares.shape[1])
    return -np.diff(np.take_along_axis(up_to, place, axis=1), axis=1)
