"""The key-value cache of many prompts that are decoded together: how many fit, and memory that is reserved once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import Cache, DynamicCache, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer

CPU_TOKENS = 32768  # tokens of all prompts decoded together on a CPU, padding included


def cache_tokens(model: PreTrainedModel, longest: int, at_once: int) -> int:
    """For how many tokens to hold keys and values: CPU_TOKENS, or as many as fit in a GPU's free memory."""
    if model.device.type != "cuda":
        return CPU_TOKENS
    free, _ = torch.cuda.mem_get_info(model.device)
    free += torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)  # torch's free blocks
    return tokens_in(free, model.config.get_text_config(), model.dtype.itemsize, longest, at_once)


def tokens_in(free: int, config: PreTrainedConfig, itemsize: int, longest: int, at_once: int) -> int:
    """For how many tokens keys and values fit in memory, at least 1.

    Args:
        free: bytes; a tenth is left unused, because memory fragments.
        config: the configuration of the language model.
        itemsize: bytes per number.
        longest: the tokens of the longest prompt, whose keys and values are held a second time.
        at_once: how many tokens of a prompt are read in one pass.
    """
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    grouped = getattr(config, "num_key_value_heads", None) or heads
    token = 2 * config.num_hidden_layers * grouped * head_dim * itemsize
    # A layer holds the residual, its norm in float32, queries, keys, values, the result, and three arrays of the MLP.
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    passing = (8 * config.hidden_size + 3 * inner) * itemsize
    left = 0.9 * free - longest * token - min(longest, at_once) * passing
    return max(int(left // token), 1)


class Reserved(DynamicLayer):
    """A dynamic cache layer that grows inside memory reserved once, not by concatenation."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self._all = [x.new_empty((*x.shape[:2], self.capacity, x.shape[3])) for x in (key_states, value_states)]
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


class Rows:
    """The cache of a batch: one row per request; all prompts end at the same column."""

    def __init__(self, model: PreTrainedModel, rows: int, capacity: int) -> None:
        self.alone = has_windows(model)
        self.rows = rows
        self.layers = [Reserved(capacity) for _ in range(model.config.get_text_config().num_hidden_layers)]
        self.cache = Cache(layers=self.layers)

    def take(self, row: int, end: int, prefix: Cache) -> None:
        """Copy prefilled prompts into rows from `row` on, their last tokens at column end − 1."""
        if self.alone:
            self.cache = prefix
            return
        for layer, source in zip(self.layers, prefix.layers):
            if not layer.is_initialized:
                layer.lazy_initialization(*(x[:1].expand(self.rows, -1, -1, -1) for x in (source.keys, source.values)))
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


def has_windows(model: PreTrainedModel) -> bool:
    """Whether some layer's cache forgets (a sliding window); prompts are then decoded one by one and share nothing."""
    return any(getattr(layer, "is_sliding", False) for layer in DynamicCache(config=model.config).layers)


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two prompts share at the beginning."""
    return next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
