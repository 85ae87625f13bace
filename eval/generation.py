"""Greedy generation for many prompts: each is read in the way that is fastest here, and decoding
runs in batches.

On a CPU, prompts are sorted lexicographically by their tokens, so each shares its longest prefix
with the one just before it. The key-value cache is cropped to that prefix, and only the rest of the
prompt is computed. So each shared prefix is computed once, except prefixes too short to be worth
it.

On a GPU, a chunk that is read over a cache costs more time to launch than to compute. Prompts are
sorted by their length there and read whole, several of one length in one pass, which needs neither
padding nor a mask.

Decoding then runs in left-padded batches, in a cache that is allocated once instead of grown by
concatenation. Layers with a sliding window keep all keys, too: only such a cache can be cropped,
and the mask applies the window. Other layers (linear attention, convolution, state space) keep a
state that cannot be taken back to an earlier token. A model that has one reads each prompt whole
and alone, into a cache of its own choice.

Where a model's RoPE scale follows the input's length (CLEX, `dynamic`, `longrope`), only inputs of
the same scale share a prefix or a batch. An input's scale is that of its prompt plus all tokens
that may be generated.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from itertools import accumulate, count, groupby, takewhile

import torch
from accelerate.utils.memory import should_reduce_batch_size
from transformers import Cache, DynamicCache, GenerationConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from core.errors import InputError, NonFiniteError
from core.huggingface.rotation import at_length, scale_for
from eval import Request

# Attention over a cache wastes work on the upper triangle of each chunk, so chunks are as short as
# matrix products stay efficient. Attention without a cache skips the triangle, so a prompt that
# shares no prefix is read in one pass, up to a length whose activations fit in memory.
PREFILL_CHUNK = 512
FIRST_PASS = 32768
# tokens of one length's prompts that a GPU reads in one pass; a longer prompt is read alone
TOGETHER = 16384
# Tokens of all prompts that are decoded together, padding included; half as many each time memory
# runs out.
CPU_TOKENS = 32768
GPU_TOKENS = 131072
# of a prompt; sharing less saves less than reading the rest over a cache costs
LEAST_SHARED = 1 / 8


@torch.inference_mode()
def generate(
    model: PreTrainedModel, requests: Iterable[Request], cache_tokens: int | None = None
) -> Iterator[tuple[str, list[int]]]:
    """Continue every prompt greedily; yields (key, new token ids) in the order they finish.

    Args:
        model: a causal language model.
        requests: what to continue.
        cache_tokens: for how many tokens, padding included, keys and values may be held while
            decoding; it sets the batch size. None for CPU_TOKENS or GPU_TOKENS.

    Raises:
        InputError: the model returns no cache to continue from.
        NonFiniteError: logits are not finite; the message names the sample.
    """

    def scale(request: Request) -> int | bytes:
        return scale_for(model, _capacity(request))

    if not keeps_tokens(model):
        cache_tokens = 0  # one by one
    elif cache_tokens is None:
        cache_tokens = GPU_TOKENS if _reads_whole(model) else CPU_TOKENS
    ordered = sorted(requests, key=lambda request: request.prompt)
    if _reads_whole(model):
        ordered.sort(key=lambda request: len(request.prompt))
    ordered.sort(key=scale)
    for _, group in groupby(ordered, scale):
        yield from _continue_group(model, list(group), cache_tokens)


def _reads_whole(model: PreTrainedModel) -> bool:
    """Whether prompts are read whole rather than from where they differ from the last one."""
    return model.device.type == "cuda"


def _continue_group(
    model, waiting: list[Request], cache_tokens: int
) -> Iterator[tuple[str, list[int]]]:
    """Requests of one scale, batch by batch in the order in which they are read; fewer at once if
    memory runs out."""
    prefix = _Prefix(model, max(len(request.prompt) for request in waiting))
    while waiting:
        batch = _first_batch(waiting, cache_tokens)
        longest = max(map(_capacity, batch))
        try:
            with at_length(model, longest):
                done = _decode(model, prefix, batch)
        except RuntimeError as error:
            if len(batch) == 1 or not should_reduce_batch_size(error):
                raise
            done = None  # the failed batch's tensors are freed only outside the handler
        if done is None:
            torch.cuda.empty_cache()
            prefix.forget(prefix.longest)
            cache_tokens = len(batch) // 2 * longest
        else:
            yield from done
            waiting = waiting[len(batch) :]


def _first_batch(waiting: list[Request], cache_tokens: int) -> list[Request]:
    """As many of the first requests as take at most so many tokens, each as long as the longest; at
    least one."""
    for size, longest in enumerate(accumulate(map(_capacity, waiting), max), 1):
        if size > 1 and size * longest > cache_tokens:
            return waiting[: size - 1]
    return waiting


def _decode(model, prefix: _Prefix, batch: list[Request]) -> list[tuple[str, list[int]]]:
    """Prefill each prompt into its row of a common cache, then decode all rows together."""
    if not keeps_tokens(model):
        prompts = torch.tensor([request.prompt for request in batch], device=model.device)  # one
        read = model(prompts, use_cache=True, logits_to_keep=1)
        if "past_key_values" not in read:
            raise InputError(
                f"{type(model).__name__} keeps its state to itself; give a model that returns its "
                f"cache."
            )
        return _decode_rows(model, read.past_key_values, read.logits[:, -1], batch)
    longest = max(len(request.prompt) for request in batch)
    rows = reserved(model, longest + max(request.max_new_tokens for request in batch))
    first: list[torch.Tensor] = []
    for length, group in groupby([request.prompt for request in batch], len):
        prompts = list(group)
        at_once = max(TOGETHER // length, 1) if _reads_whole(model) else 1
        for start in range(0, len(prompts), at_once):
            logits = prefix.prefill(prompts[start : start + at_once])
            _take(rows, len(batch), len(first), longest, prefix.cache)
            first += logits
    return _decode_rows(model, rows, torch.stack(first), batch)


def _decode_rows(
    model, rows: Cache, logits: torch.Tensor, batch: list[Request]
) -> list[tuple[str, list[int]]]:
    """Continue all rows together; the logits after each prompt are [rows, vocabulary]."""
    lengths = torch.tensor([len(request.prompt) for request in batch], device=model.device)
    longest = int(lengths.max())
    padding = longest - lengths
    ends = model_stops(model.generation_config)
    continuations: dict[str, list[int]] = {request.key: [] for request in batch}
    for width in count(longest + 1):  # columns of the cache, with that of the token to be read
        finite = torch.isfinite(logits).all(dim=-1).tolist()
        for row, request in enumerate(batch):
            made = len(continuations[request.key])
            if not finite[row]:
                raise NonFiniteError(
                    f"{request.key}: the logits after {made} new tokens are not finite"
                )
            if made < request.min_new_tokens:
                known = [end for end in ends | request.stop if end < logits.shape[1]]
                logits[row, known] = -torch.inf
        chosen = logits.argmax(-1).tolist()
        kept = []
        for row, request in enumerate(batch):
            if chosen[row] in ends | request.stop:
                continue
            continuations[request.key].append(chosen[row])
            if len(continuations[request.key]) < request.max_new_tokens:
                kept.append(row)
        if not kept:
            break
        if len(kept) < len(batch):
            rows.batch_select_indices(kept)
            padding = padding[kept]
            batch = [batch[row] for row in kept]
        columns = torch.arange(width, device=model.device)
        logits = model(
            torch.tensor([[chosen[row]] for row in kept], device=model.device),
            attention_mask=columns >= padding[:, None],
            position_ids=width - 1 - padding[:, None],
            past_key_values=rows,
            use_cache=True,
        ).logits[:, -1]
    return list(continuations.items())


class _Prefix:
    """The cache of the last prompt; the next one reuses the prefix that they share, unless prompts
    are read whole."""

    def __init__(self, model: PreTrainedModel, longest: int) -> None:
        self.model = model
        self.longest = longest
        self.forget(longest)

    def forget(self, capacity: int) -> None:
        """Start from nothing, with room for so many tokens."""
        self.cache = reserved(self.model, capacity)
        self.tokens: tuple[int, ...] = ()

    def prefill(self, prompts: list[tuple[int, ...]]) -> torch.Tensor:
        """The logits after prompts of equal length, [prompts, vocabulary]; the cache then holds the
        prompts.

        Several are read only where prompts are read whole.
        """
        first = prompts[0]
        # The last token is always computed, as its logits are needed.
        shared = shared_prefix(self.tokens, first[:-1])
        whole = _reads_whole(self.model)
        if whole or shared < LEAST_SHARED * len(first):
            self.forget(len(first) if whole else self.longest)
            shared = 0
        elif shared < len(self.tokens):
            self.cache.crop(shared - len(self.tokens))
        rest = torch.tensor([prompt[shared:] for prompt in prompts], device=self.model.device)
        for chunk in rest.split(PREFILL_CHUNK if shared else FIRST_PASS, dim=1):
            logits = self.model(
                chunk, past_key_values=self.cache, use_cache=True, logits_to_keep=1
            ).logits
        self.tokens = first
        return logits[:, -1]


def _capacity(request: Request) -> int:
    return len(request.prompt) + request.max_new_tokens


def model_stops(config: GenerationConfig) -> frozenset[int]:
    """A model's own end-of-sequence ids."""
    stated = config.eos_token_id
    if isinstance(stated, int):
        return frozenset([stated])
    return frozenset(stated or ())


# ---- the cache


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
        super().lazy_initialization(key_states, value_states)
        self._all = [
            x.new_empty((*x.shape[:2], self.capacity, x.shape[3]))
            for x in (key_states, value_states)
        ]

    def show(self, end: int) -> None:
        """Let the cache be the columns before `end`."""
        self.keys, self.values = (x[:, :, :end] for x in self._all)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        for reserved, new in zip(self._all, (key_states, value_states)):
            reserved[:, :, start:end] = new
        self.show(end)
        return self.keys, self.values

    def batch_select_indices(self, indices) -> None:
        self._all = [x[indices] for x in self._all]
        self.show(self.get_seq_length())


def reserved(model: PreTrainedModel, capacity: int) -> Cache:
    """An empty cache of a model, with room for so many tokens."""
    layers = model.config.get_text_config().num_hidden_layers
    return Cache(layers=[Reserved(capacity) for _ in range(layers)])


def _take(rows: Cache, size: int, row: int, end: int, prefix: Cache) -> None:
    """Copy prefilled prompts into the cache of a batch.

    Args:
        rows: the batch's cache, with a row for each of `size` requests.
        row: the first of the rows to fill.
        end: the prompts' last tokens are at column end − 1, where those of all rows are.
        prefix: holds the prompts.
    """
    for layer, source in zip(rows.layers, prefix.layers):
        if not layer.is_initialized:
            layer.lazy_initialization(
                *(x[:1].expand(size, -1, -1, -1) for x in (source.keys, source.values))
            )
            for reserved in layer._all:
                reserved[:, :, :end] = 0  # padding is masked, but must be finite
            layer.show(end)
        for reserved, new in zip(layer._all, (source.keys, source.values)):
            reserved[row : row + len(new), :, end - new.shape[2] : end] = new


def shared_prefix(first: Iterable[int], second: Iterable[int]) -> int:
    """How many tokens two prompts share at the beginning."""
    equal = map(operator.eq, first, second)
    return sum(takewhile(bool, equal))
