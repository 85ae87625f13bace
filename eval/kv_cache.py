"""The key-value cache of many prompts that are decoded together, in memory that is reserved once.

Layers with a sliding window keep all keys, too: only such a cache can be cropped, and the mask
applies the window. Other layers (linear attention, convolution, state space) keep a state that
cannot be taken back to an earlier token. A model that has one reads each prompt whole and alone,
into a cache of its own choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer


def keeps_tokens(model: PreTrainedModel) -> bool:
    """Whether all that a model's layers keep of what they have read is a key and a value for each
    token."""
    kinds = {type(layer) for layer in DynamicCache(config=model.config).layers}
    return not model._is_stateful and kinds <= {DynamicLayer, DynamicSlidingWindowLayer}


class Reserved(DynamicLayer):
    """A dynamic cache layer that grows inside memory reserved once, not by concatenation."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype = key_states.dtype
        self.device = key_states.device
        self._all = [
            x.new_empty((*x.shape[:2], self.capacity, x.shape[3]))
            for x in (key_states, value_states)
        ]
        self.keys, self.values = (x[:, :, :0] for x in self._all)
        self.is_initialized = True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        for reserved, new in zip(self._all, (key_states, value_states)):
            reserved[:, :, start:end] = new
        self.keys, self.values = (x[:, :, :end] for x in self._all)
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return self.keys.shape[-2] if self.is_initialized else 0


def reserved(model: PreTrainedModel, capacity: int) -> list[Reserved]:
    """A layer of the cache for each layer of the model, with room for so many tokens."""
    return [Reserved(capacity) for _ in range(model.config.get_text_config().num_hidden_layers)]


class Rows(Cache):
    """The cache of a batch: one row per request; all prompts end at the same column."""

    def __init__(self, model: PreTrainedModel, rows: int, capacity: int) -> None:
        super().__init__(layers=reserved(model, capacity))
        self.rows = rows

    def take(self, row: int, end: int, prefix: Cache) -> None:
        """Copy prefilled prompts into rows from `row` on, their last tokens at column end − 1."""
        for layer, source in zip(self.layers, prefix.layers):
            if not layer.is_initialized:
                layer.lazy_initialization(
                    *(x[:1].expand(self.rows, -1, -1, -1) for x in (source.keys, source.values))
                )
                for reserved in layer._all:
                    reserved[:, :, :end] = 0  # padding is masked, but must be finite
                layer.keys, layer.values = (x[:, :, :end] for x in layer._all)
            for reserved, new in zip(layer._all, (source.keys, source.values)):
                reserved[row : row + len(new), :, end - new.shape[2] : end] = new

    def keep(self, rows: list[int]) -> None:
        """Keep these rows and drop the others, which are done."""
        for layer in self.layers:
            end = layer.get_seq_length()
            layer._all = [x[rows] for x in layer._all]
            layer.keys, layer.values = (x[:, :, :end] for x in layer._all)


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two prompts share at the beginning."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second))
    )
