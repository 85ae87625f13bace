"""Batched generation with shared beginnings against transformers' own generate, prompt by
prompt."""

import pytest
import torch

from core.extend import extend
from eval import generation
from eval.generation import Request, generate
from tests.core.huggingface.test_families import HYBRIDS
from tests.models import random_model

LAYERS = ["sliding_attention", "full_attention"]
GENERATOR = torch.Generator().manual_seed(0)


def draw(length):
    return torch.randint(3, 300, (length,), generator=GENERATOR).tolist()


def prompts():
    """Seven prompts of different lengths; three of them begin alike."""
    start = draw(30)
    return [
        draw(40),
        draw(20),
        draw(7),
        start[:15] + draw(20),
        draw(30),
        start + draw(3),
        start + draw(20),
    ]


def one_by_one(model, request):
    """The request's answer by transformers, without what ends it."""
    tokens = torch.tensor([request.prompt])
    out = model.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        do_sample=False,
        max_new_tokens=request.max_new_tokens,
        pad_token_id=0,
        eos_token_id=[2, *request.stop],
        min_new_tokens=request.min_new_tokens,
    )[0, len(request.prompt) :].tolist()
    return [token for token in out if token != 2 and token not in request.stop]


@pytest.mark.parametrize(
    "architecture, overrides",
    [
        ("Qwen2Config", {}),
        (
            "Qwen2Config",
            {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1},
        ),
        ("Gemma3TextConfig", {"layer_types": LAYERS, "sliding_window": 8, "head_dim": 16}),
        *HYBRIDS.items(),
    ],
)
def test_same_tokens_as_generate_one_by_one(monkeypatch, architecture, overrides):
    """Each way of reading, and one by one, in batches and all at once."""
    monkeypatch.setattr(generation, "PREFILL_CHUNK", 16)
    model = extend(random_model(architecture, **overrides), "dprope", 2)
    requests = [Request(str(i), tuple(each), 3 + i % 3) for i, each in enumerate(prompts())]
    expected = {request.key: one_by_one(model, request) for request in requests}
    for cache_tokens, first_pass in ((1, 16), (100, 10**6), (10**6, 10**6)):
        monkeypatch.setattr(generation, "FIRST_PASS", first_pass)
        assert dict(generate(model, requests, cache_tokens)) == expected
    monkeypatch.setattr(generation, "_reads_whole", lambda model: True)
    monkeypatch.setattr(generation, "TOGETHER", 100)
    assert dict(generate(model, requests, 10**6)) == expected


def test_stops_and_least_lengths_are_those_of_generate():
    model = random_model()
    prompt = tuple(draw(30))
    free = one_by_one(model, Request("free", prompt, 12))
    stop = frozenset([free[3]])
    stopped = Request("stopped", prompt, 12, stop)
    later = Request("later", prompt, 12, stop, min_new_tokens=5)
    answers = dict(generate(model, [stopped, later]))
    assert answers["stopped"] == one_by_one(model, stopped)
    assert answers["later"] == one_by_one(model, later)
    assert len(answers["stopped"]) <= 3
    assert len(answers["later"]) >= 5


def test_shared_beginnings_are_prefilled_once():
    """Counting the tokens that pass through the model: the edges of the prefix tree, and no
    more."""
    model = random_model()
    sequences = [(*range(3, 3 + k), 200 + k, 201, 202) for k in (5, 50, 20, 35)]
    passed = []
    model.get_input_embeddings().register_forward_hook(
        lambda _, inputs, __: passed.append(inputs[0].numel())
    )
    dict(generate(model, [Request(str(i), s, 1) for i, s in enumerate(sequences)]))
    tree = {s[: i + 1] for s in sequences for i in range(len(s))}
    assert sum(passed) == len(tree) == 50 + 4 * 3


def test_the_batch_keeps_to_its_tokens_and_to_half_as_many_when_memory_runs_out(monkeypatch):
    model = random_model()
    decode = generation._decode
    sizes = []
    # of 16 tokens each
    requests = [Request(str(i), (5, 6, 7 + i, *range(10, 20)), 3) for i in range(9)]
    expected = {request.key: one_by_one(model, request) for request in requests}

    def small_machine(model, prefix, batch):
        sizes.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return decode(model, prefix, batch)

    monkeypatch.setattr(generation, "_decode", small_machine)
    assert dict(generate(model, requests, 5 * 16 + 15)) == expected
    assert sizes == [5, 2, 2, 2, 2, 1]
    assert list(generate(model, [])) == []
