"""FlashAttention, emulated where transformers calls it, against SDPA; and what generation asks of it."""

import pytest
import torch

from core.extend import extend
from eval.generation import Request, generate
from tests.flash import Emulation
from tests.models import random_model


@pytest.fixture
def emulation(monkeypatch):
    return Emulation(monkeypatch)


def both(architecture="LlamaConfig", **overrides):
    """The same model under SDPA and under FlashAttention."""
    models = [extend(random_model(architecture, **overrides), "dprope", 2) for _ in range(2)]
    models[1].set_attn_implementation("flash_attention_2")
    return models


def tokens(*shape):
    return torch.randint(3, 300, shape, generator=torch.Generator().manual_seed(0))


@torch.inference_mode()
def test_logits_are_those_of_sdpa_with_padding_and_of_rows_packed_into_one(emulation):
    plain, fast = both("MistralConfig", sliding_window=16)
    ids, mask = tokens(3, 40), torch.ones(3, 40, dtype=torch.long)
    mask[0, :25] = mask[1, :7] = 0
    found, expected = (model(ids, attention_mask=mask).logits[mask.bool()] for model in (fast, plain))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert emulation.calls == {"whole": 0, "packed": 2, "unpad": 2}

    rows = [tokens(1, length) for length in (30, 1, 25)]
    positions = torch.cat([torch.arange(row.shape[1]) for row in rows])[None]
    packed = fast(torch.cat(rows, dim=1), position_ids=positions).logits
    torch.testing.assert_close(packed, torch.cat([plain(row).logits for row in rows], dim=1), rtol=1e-4, atol=1e-4)
    assert emulation.calls["packed"] == 4


def test_generation_makes_the_same_tokens_and_never_unpads_the_cache(emulation):
    plain, fast = both()
    requests = [Request(str(i), tuple(tokens(length).tolist()), 5) for i, length in enumerate((50, 20, 20, 7))]
    expected = dict(generate(plain, requests))
    for cache_tokens in (60, 10**6):  # two of one length together, all together
        assert dict(generate(fast, requests, cache_tokens)) == expected
        assert fast.config._attn_implementation == "flash_attention_2"
    assert emulation.calls["whole"] >= 2 * len(requests) and emulation.calls["unpad"] == 0
