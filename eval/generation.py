"""Greedy generation for many prompts at once: shared beginnings prefilled once, decoding in batches.

Prompts are taken in lexicographic order of their tokens, so that each has its longest common beginning with the one
just before it; the key-value cache is cropped to that beginning and only the rest is computed. Over all prompts every
edge of their prefix tree is prefilled once, but for beginnings too short to be worth it. Decoding then runs in batches, left-padded, in a cache that is
allocated once rather than grown by concatenation.

Where a model's RoPE scale follows the input's length (CLEX), only inputs of one scale share anything; it is that of the
prompt and all tokens that may be generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import torch
from accelerate.utils.memory import should_reduce_batch_size
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from core.clex import at_length, factor_for
from core.errors import NonFiniteError

# Attention over a cache computes a chunk's own upper triangle in vain, so chunks are as short as matrices stay efficient;
# without one it skips the triangle, so what shares nothing is read at once, up to what activations leave room for.
PREFILL_CHUNK = 512
FIRST_PASS = 32768
LEAST_SHARED = 1 / 8  # of a prompt; to share less saves less than reading the rest over a cache costs
CACHE_TOKENS = 32768  # of all prompts decoded together, padding included; LLaMA2-7B in bf16 needs 16 GB for it


@dataclass(frozen=True)
class Request:
    """A prompt to continue.

    Attributes:
        key: names the sample.
        prompt: its token ids; at least one.
        max_new_tokens: the most tokens to generate.
        stop: token ids that end the continuation, beside the model's own; they are not returned.
        min_new_tokens: how many tokens to generate before any of them may end it.
    """

    key: str
    prompt: tuple[int, ...]
    max_new_tokens: int
    stop: frozenset[int] = frozenset()
    min_new_tokens: int = 0


@torch.inference_mode()
def generate(
    model: PreTrainedModel,
    requests: Iterable[Request],
    cache_tokens: int = CACHE_TOKENS,
    progress: Callable[[int], object] = lambda requests: None,
) -> Iterator[tuple[str, list[int]]]:
    """Continue every prompt greedily; (key, new token ids) in the order they are done.

    Args:
        model: a causal language model.
        requests: what to continue.
        cache_tokens: how many tokens' keys and values may be held for decoding; sets the batch size.
        progress: called with the number of requests done, after each batch.

    Raises:
        NonFiniteError: naming the sample.
    """

    def scale(request: Request) -> int:
        return factor_for(model, _capacity(request))

    for _, group in groupby(sorted(requests, key=scale), scale):
        yield from _continue_group(model, sorted(group, key=lambda request: request.prompt), cache_tokens, progress)


def _continue_group(model, ordered: list[Request], cache_tokens: int, progress) -> Iterator[tuple[str, list[int]]]:
    """Requests of one scale, in lexicographic order."""
    prefix = _Prefix(model, max(len(request.prompt) for request in ordered))
    alone = _has_windows(model)
    batch: list[Request] = []
    for request in ordered:
        grown = [*batch, request]
        if batch and (alone or len(grown) * max(_capacity(r) for r in grown) > cache_tokens):
            yield from _continue_all(model, prefix, batch, progress)
            batch = []
        batch.append(request)
    if batch:
        yield from _continue_all(model, prefix, batch, progress)


def _continue_all(model, prefix: _Prefix, batch: list[Request], progress) -> Iterator[tuple[str, list[int]]]:
    """One batch; out of memory, each half of it."""
    try:
        with at_length(model, max(_capacity(request) for request in batch)):
            done = _decode(model, prefix, batch)
    except RuntimeError as error:
        if len(batch) == 1 or not should_reduce_batch_size(error):
            raise
        done = None  # leave the handler first, so that the failed batch's tensors are freed
    if done is None:
        torch.cuda.empty_cache()
        prefix.forget()
        half = len(batch) // 2
        yield from _continue_all(model, prefix, batch[:half], progress)
        yield from _continue_all(model, prefix, batch[half:], progress)
    else:
        yield from done
        progress(len(batch))


def _decode(model, prefix: _Prefix, batch: list[Request]) -> list[tuple[str, list[int]]]:
    """Prefill each prompt into its row of a common cache, then decode all rows together."""
    longest = max(len(request.prompt) for request in batch)
    rows = _Rows(model, len(batch), longest + max(request.max_new_tokens for request in batch))
    first = []
    for index, request in enumerate(batch):
        first.append(prefix.prefill(request))
        rows.take(index, longest, prefix.cache)
    logits = torch.stack(first)
    lengths = torch.tensor([len(request.prompt) for request in batch], device=model.device)
    mask = torch.arange(longest, device=model.device)[None] >= longest - lengths[:, None]

    ends = _model_stops(model)
    made: list[list[int]] = [[] for _ in batch]
    alive = list(range(len(batch)))
    while True:
        for row, index in enumerate(alive):
            request = batch[index]
            if not torch.isfinite(logits[row]).all():
                raise NonFiniteError(f"{request.key}: the logits after {len(made[index])} new tokens are not finite")
            if len(made[index]) < request.min_new_tokens:
                logits[row, list(ends | request.stop)] = -torch.inf
        chosen = logits.argmax(-1).tolist()
        kept = []
        for row, index in enumerate(alive):
            request = batch[index]
            if chosen[row] in ends or chosen[row] in request.stop:
                continue
            made[index].append(chosen[row])
            if len(made[index]) < request.max_new_tokens:
                kept.append(row)
        if not kept:
            return [(request.key, tokens) for request, tokens in zip(batch, made)]
        if len(kept) < len(alive):
            rows.keep(kept)
            lengths, mask = lengths[kept], mask[kept]
            alive = [alive[row] for row in kept]
        mask = torch.nn.functional.pad(mask, (0, 1), value=True)
        tokens = torch.tensor([[chosen[row]] for row in kept], device=model.device)
        logits = model(
            tokens,
            attention_mask=mask,
            position_ids=lengths[:, None],
            past_key_values=rows.cache,
            use_cache=True,
        ).logits[:, -1]
        lengths = lengths + 1


class _Prefix:
    """The cache of the prompt prefilled last, from which the next one takes what it shares."""

    def __init__(self, model: PreTrainedModel, capacity: int) -> None:
        self.model, self.capacity = model, capacity
        self.forget()

    def forget(self) -> None:
        """Start from nothing."""
        config = self.model.config.get_text_config()
        if _has_windows(self.model):
            self.cache = DynamicCache(config=config)
        else:
            self.cache = Cache(layers=[_Reserved(self.capacity) for _ in range(config.num_hidden_layers)])
        self.tokens: tuple[int, ...] = ()

    def prefill(self, request: Request) -> torch.Tensor:
        """Logits after the prompt, [vocabulary]; the cache then holds the prompt."""
        shared = 0
        # The last token is always computed, as its logits are needed.
        for ours, theirs in zip(self.tokens, request.prompt[:-1]):
            if ours != theirs:
                break
            shared += 1
        # A sliding window forgets what a crop would need.
        if _has_windows(self.model) or shared < LEAST_SHARED * len(request.prompt):
            self.forget()
            shared = 0
        elif shared < len(self.tokens):
            self.cache.crop(shared - len(self.tokens))
        self.tokens = ()  # unless the pass below succeeds, the cache holds a part of the prompt
        rest = torch.tensor([request.prompt[shared:]], device=self.model.device)
        for chunk in rest.split(PREFILL_CHUNK if shared else FIRST_PASS, dim=1):
            logits = self.model(chunk, past_key_values=self.cache, use_cache=True, logits_to_keep=1).logits
        self.tokens = request.prompt
        return logits[0, -1]


class _Reserved(DynamicLayer):
    """A dynamic cache layer that grows inside memory reserved once, instead of by concatenation."""

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


class _Rows:
    """The cache of a batch: one row a request, prompts ending at the same column."""

    def __init__(self, model: PreTrainedModel, rows: int, capacity: int) -> None:
        self.alone = _has_windows(model)
        self.rows = rows
        self.layers = [_Reserved(capacity) for _ in range(model.config.get_text_config().num_hidden_layers)]
        self.cache = Cache(layers=self.layers)

    def take(self, row: int, end: int, prefix: Cache) -> None:
        """Copy a prefilled prompt into `row`, its last token at column end − 1."""
        if self.alone:
            self.cache = prefix
            return
        for layer, source in zip(self.layers, prefix.layers):
            if not layer.is_initialized:
                layer.lazy_initialization(*(x.expand(self.rows, -1, -1, -1) for x in (source.keys, source.values)))
                for reserved in layer._all:
                    reserved[:, :, :end] = 0  # padding is masked, but must be finite
                layer.keys, layer.values = (x[:, :, :end] for x in layer._all)
            for reserved, new in zip(layer._all, (source.keys, source.values)):
                reserved[row, :, end - new.shape[2] : end] = new[0]

    def keep(self, rows: list[int]) -> None:
        """Drop the rows that are done."""
        for layer in self.layers:
            end = layer.get_seq_length()
            layer._all = [x[rows] for x in layer._all]
            layer.keys, layer.values = (x[:, :, :end] for x in layer._all)


def _capacity(request: Request) -> int:
    return len(request.prompt) + request.max_new_tokens


def _has_windows(model: PreTrainedModel) -> bool:
    """Whether some layer's cache forgets (a sliding window); such prompts are decoded one by one, nothing shared."""
    return any(getattr(layer, "is_sliding", False) for layer in DynamicCache(config=model.config).layers)


def _model_stops(model: PreTrainedModel) -> frozenset[int]:
    """The model's own end-of-sequence ids."""
    ids = model.generation_config.eos_token_id
    return frozenset() if ids is None else frozenset([ids] if isinstance(ids, int) else ids)
