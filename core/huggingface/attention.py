"""Attention by SDPA in memory that is linear in the number of tokens, where transformers' own is
quadratic.

No kernel of CUDA takes both float32 and grouped queries, so SDPA falls back to plain products, and
their scores of all heads, [heads, tokens, tokens]. With keys repeated for each query, a kernel
takes them. And a mask of many queries is copied as numbers, four bytes for each pair of tokens; a
part of the queries needs a part of it.
"""

from types import SimpleNamespace

import torch
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

QUERIES = 1024  # that are masked at a time


def sdpa(module, query, key, value, attention_mask, **how) -> tuple[torch.Tensor, None]:
    """What transformers registers as "sdpa", with the same result.

    Args:
        query: [batch, heads, queries, head dimension].
        key, value: [batch, key heads, tokens, head dimension]; the heads are a multiple of the key
            heads.
        attention_mask: None, or [batch, 1 or heads, queries, tokens].
        how: whatever else a model gives, such as `scaling`.

    Returns:
        [batch, queries, heads, head dimension], and no weights.
    """
    groups = query.shape[1] // key.shape[1]
    count = query.shape[2]
    split = attention_mask is not None and count > QUERIES and how.get("position_bias") is None
    if groups > 1 and (split or (attention_mask is None and _has_no_kernel(query))):
        key = repeat_kv(key, groups)
        value = repeat_kv(value, groups)
        module = SimpleNamespace(is_causal=getattr(module, "is_causal", True))  # that has no groups
    if not split:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **how)
    masks = attention_mask.expand(-1, -1, count, -1).split(QUERIES, dim=2)
    outputs = [
        sdpa_attention_forward(module, queries, key, value, mask, **how)[0]
        for queries, mask in zip(query.split(QUERIES, dim=2), masks, strict=True)
    ]
    return torch.cat(outputs, dim=1), None


def _has_no_kernel(query: torch.Tensor) -> bool:
    """Whether only plain products take grouped queries of this dtype on this device."""
    return query.device.type == "cuda" and query.dtype == torch.float32 and query.shape[2] > 1
