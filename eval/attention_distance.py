"""How far back attention looks: its share by distance, sinks left out.

Attention that finds nothing to look at goes to the first tokens of a text, whatever they are and however far away
(Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023). It says nothing of distance and would
fill the farthest bins, so the first key is left out, and what a query gives to the others is made to sum to 1. Xiao et
al. found that models which saw no fixed first token in pre-training can need up to four sinks; :class:`Found` says what
the first keys took.
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

AT_A_TIME = 64  # queries whose attention is held at once, of one layer
QUARTERS = 4
FIRST = 8  # keys whose share is told
_UNSEEN = "not every layer of this model attends through transformers' interface for SDPA"


@dataclass(frozen=True)
class Found:
    """Shares of attention in one text.

    Attributes:
        mass: by layer, quarter of the query positions and bin of distances, sums over queries of means over heads,
            float64 [layers, 4, bins].
        queries: how many were read in each quarter, [4].
        first_keys: mean share of all attention, sinks included, on the keys 0 … 7, [8].
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
    """Where the chosen queries look, in one pass over the text; one layer's attention for 64 of them is held at a time.

    Args:
        model: a causal language model that attends through transformers' attention interface, as most do.
        tokens: int64 [tokens].
        edges: of the bins in tokens, ascending, from 0 to len(tokens) [bins + 1].
        queries: positions to read, each with a key behind the sinks, [n].
        sinks: how many of the first keys are left out.
        progress: called after each layer.

    Raises:
        InputError: a model that attends in another way, or no such queries.
        NonFiniteError: attention is not finite.
    """
    if len(queries) == 0 or min(queries) < max(sinks, FIRST) or max(queries) >= len(tokens):
        raise InputError(f"a query is read from position {max(sinks, FIRST)} on; give queries within the text.")
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
    """Within, `read` sees what each layer attends with; attention itself is computed as ever."""
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
    """Means over heads: attention of the rows to the keys behind the sinks, [rows, keys]; the rows' sum on the first
    keys, [8].
    """
    logits = (query @ key.transpose(1, 2)).float() * scaling
    position = torch.arange(key.shape[1], device=key.device)
    at = torch.as_tensor(rows, device=key.device)
    seen = position <= at[:, None]
    if mask is not None and mask.dtype == torch.bool:  # a window, besides what is causal
        seen = seen & mask[at][:, : len(position)]
    elif mask is not None:
        logits += mask[at][:, : len(position)]
    logits.masked_fill_(~seen, -torch.inf)
    leading = (logits[:, :, :FIRST] - logits.logsumexp(dim=2, keepdim=True)).exp().mean(dim=0).sum(dim=0)
    # The softmax of what is left is what the whole softmax gives it, made to sum to 1.
    shares = logits[:, :, sinks:].softmax(dim=2).mean(dim=0)
    return shares.double().cpu().numpy(), leading.double().cpu().numpy()


def _binned(shares: np.ndarray, rows: np.ndarray, edges: np.ndarray, sinks: int) -> np.ndarray:
    """[rows, keys behind the sinks] → [rows, bins] by the distance from each row's own position."""
    up_to = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(shares, axis=1)], axis=1)
    # Keys up to and with the one `edge` tokens back: a bin ends where the next begins.
    place = np.clip(rows[:, None] + 1 - edges - sinks, 0, shares.shape[1])
    return -np.diff(np.take_along_axis(up_to, place, axis=1), axis=1)
