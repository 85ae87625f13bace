"""How many prompts a GPU decodes together, by numbers worked by hand."""

import pytest
import torch
from transformers import LlamaConfig

from eval import generation, kv_cache
from eval.generation import Request, generate
from tests.models import random_model

SEVEN = LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32)
GB = 10**9


def test_of_llama2_7b_in_half_precision_a_token_takes_half_a_megabyte():
    # 2 · 32 layers · 4096 numbers of 2 bytes; a prompt of one token takes next to nothing.
    assert kv_cache.tokens_in(10 * GB, SEVEN, 2, 1, 1) == pytest.approx(9 * GB / 524288, rel=1e-3)


def test_a_longer_prompt_leaves_less_and_none_leaves_one():
    room = [kv_cache.tokens_in(60 * GB, SEVEN, 2, longest, 32768) for longest in (4096, 8192, 16384, 20480)]
    assert room == sorted(room, reverse=True) and room[0] > 90_000 and room[-1] > 70_000
    # What is held of the longest prompt itself, and what a pass over it takes: 2 bytes of 8 · 4096 + 3 · 11008 numbers.
    assert room[0] - room[1] == pytest.approx(4096 * (1 + 131584 / 524288), abs=1)
    assert kv_cache.tokens_in(2 * GB, SEVEN, 2, 16384, 32768) == 1


@pytest.mark.parametrize(
    ("changed", "times"),
    [({"num_key_value_heads": 8}, 4), ({"head_dim": 64}, 2), ({"num_hidden_layers": 16}, 2)],
)
def test_fewer_numbers_a_token_leave_room_for_more(changed, times):
    config = LlamaConfig(**{**SEVEN.to_dict(), "head_dim": None, "num_key_value_heads": None, **changed})
    found, usual = (kv_cache.tokens_in(10 * GB, of, 2, 1, 1) for of in (config, SEVEN))
    assert found == pytest.approx(times * usual, rel=1e-3)
    assert kv_cache.tokens_in(10 * GB, config, 4, 1, 1) == pytest.approx(found / 2, rel=1e-3)


def test_a_gpu_is_asked_and_torchs_own_stock_counts_as_free(monkeypatch):
    class OnGpu:
        config, dtype, device = SEVEN, torch.bfloat16, torch.device("cuda:1")

    said = {"mem_get_info": (30 * GB, 80 * GB), "memory_reserved": 50 * GB, "memory_allocated": 14 * GB}
    for name, value in said.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert kv_cache.cache_tokens(OnGpu, 4096, 32768) == kv_cache.tokens_in(66 * GB, SEVEN, 2, 4096, 32768)


def test_generation_keeps_to_what_there_is(monkeypatch):
    model, sizes, decode = random_model(), [], generation._decode
    assert kv_cache.cache_tokens(model, 4096, 32768) == kv_cache.CPU_TOKENS
    asked = []
    monkeypatch.setattr(kv_cache, "cache_tokens", lambda model, longest, at_once: asked.append(longest) or 50)
    monkeypatch.setattr(
        generation, "_decode", lambda model, prefix, batch: sizes.append(len(batch)) or decode(model, prefix, batch)
    )
    dict(generate(model, [Request(str(i), (5, 6, 7 + i, *range(10, 20)), 3) for i in range(7)]))
    assert sizes == [3, 3, 1] and asked == [13]  # of 16 tokens each
    assert list(generate(model, [])) == []
