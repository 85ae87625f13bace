"""FlashAttention-2 on a CPU: its functions by plain sums, where transformers looks for them."""

from itertools import pairwise

import torch
import transformers.modeling_flash_attention_utils as flash
from transformers import PreTrainedModel

NAMES = ("_loaded_implementation", "_flash_fn", "_flash_varlen_fn", "_flash_with_kvcache_fn", "_pad_fn", "_unpad_fn",
         "_process_flash_kwargs_fn", "_process_with_kvcache_kwargs_fn")  # fmt: skip


def attention(q, k, v, softmax_scale, causal, window_size):
    """[queries, heads, d] of one sequence; the last query meets the last key, as in flash-attn from 2.1 on."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * (softmax_scale or q.shape[-1] ** -0.5)
    query = torch.arange(len(q))[:, None] + len(k) - len(q)
    key = torch.arange(len(k))
    left, right = window_size
    seen = torch.ones(len(q), len(k), dtype=torch.bool)
    if causal:
        seen &= key <= query
    if left >= 0:
        seen &= key >= query - left
    if right >= 0:
        seen &= key <= query + right
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, v)


class Emulation:
    """Counts what transformers asks for, as `calls`: "whole" rows, "packed" ones, and rows made so by "unpad"."""

    def __init__(self, monkeypatch) -> None:
        self.calls = {"whole": 0, "packed": 0, "unpad": 0}
        for name in NAMES:
            monkeypatch.setattr(flash, name, None)
        functions = (self.whole, self.packed, None, flash._pad_input, flash._unpad_input)
        monkeypatch.setattr(flash, "_lazy_imports", lambda implementation, *_, **__: functions)
        # Else it is refused where the package or a GPU is missing.
        check = "_check_and_adjust_attn_implementation"
        monkeypatch.setattr(PreTrainedModel, check, lambda self, name, **_: name or "sdpa")
        unpad = flash._upad_input

        def counted(*arguments):
            self.calls["unpad"] += 1
            return unpad(*arguments)

        monkeypatch.setattr(flash, "_upad_input", counted)

    def whole(self, q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1),
              deterministic=False):  # fmt: skip
        """As flash_attn_func: [rows, tokens, heads, d]."""
        self.calls["whole"] += 1
        return torch.stack([attention(*row, softmax_scale, causal, window_size) for row in zip(q, k, v)])

    def packed(self, q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
               softmax_scale=None, causal=False, window_size=(-1, -1), deterministic=False):  # fmt: skip
        """As flash_attn_varlen_func: [all tokens, heads, d]."""
        self.calls["packed"] += 1
        ends = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
        spans = zip(*map(pairwise, ends))
        return torch.cat([
            attention(q[a:b], k[c:d], v[c:d], softmax_scale, causal, window_size) for (a, b), (c, d) in spans
        ])  # fmt: skip
