"""Batched generation with shared beginnings against transformers' own generate, prompt by prompt."""

import pytest
import torch

from core.extend import extend
from eval import generation
from eval.generation import Request, generate
from tests.models import random_model

GENERATOR = torch.Generator().manual_seed(0)


def prompts(count, shared=40):
    """Random prompts of different lengths; half of them begin alike."""
    start = torch.randint(3, 300, (shared,), generator=GENERATOR).tolist()
    made = []
    for i in range(count):
        length = int(torch.randint(1, 60, (1,), generator=GENERATOR))
        tail = torch.randint(3, 300, (length,), generator=GENERATOR).tolist()
        made.append(tuple(start[: 10 * (i % 5)] + tail if i % 2 else tail))
    return made


def one_by_one(model, prompt, new, **arguments):
    tokens = torch.tensor([prompt])
    out = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_new_tokens=new, pad_token_id=0, **arguments
    )[0, len(prompt) :].tolist()
    ends = {2, *arguments.get("eos_token_id", [])}
    return [token for token in out if token not in ends]


@pytest.mark.parametrize(
    ("architecture", "overrides"),
    [
        ("LlamaConfig", {}),
        ("Qwen2Config", {}),
        ("GPTNeoXConfig", {}),
        ("MistralConfig", {"sliding_window": 16}),
        (
            "Gemma3TextConfig",
            {"head_dim": 16, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8},
        ),
    ],
)
def test_same_tokens_as_generate_one_by_one(monkeypatch, architecture, overrides):
    monkeypatch.setattr(generation, "PREFILL_CHUNK", 16)
    model = extend(random_model(architecture, **overrides), "dprope", 2)
    requests = [Request(str(i), prompt, 8 + i % 5) for i, prompt in enumerate(prompts(13))]
    expected = {request.key: one_by_one(model, request.prompt, request.max_new_tokens) for request in requests}
    for cache_tokens, first_pass in ((1, 16), (400, 10**6), (10**6, 10**6)):
        monkeypatch.setattr(generation, "FIRST_PASS", first_pass)
        assert dict(generate(model, requests, cache_tokens)) == expected
    monkeypatch.setattr(generation, "_reads_whole", lambda model: True)
    for together in (1, 100, 10**6):
        monkeypatch.setattr(generation, "TOGETHER", together)
        assert dict(generate(model, requests, 10**6)) == expected


def test_stops_and_least_lengths_are_those_of_generate():
    model = random_model()
    prompt = prompts(1)[0]
    free = one_by_one(model, prompt, 12)
    stop = free[3]
    requests = [
        Request("stopped", prompt, 12, frozenset([stop])),
        Request("later", prompt, 12, frozenset([stop]), min_new_tokens=5),
    ]
    found = dict(generate(model, requests))
    assert found["stopped"] == free[: free.index(stop)]
    expected = one_by_one(model, prompt, 12, eos_token_id=[2, stop], min_new_tokens=5)
    assert found["later"] == expected and len(expected) >= 5


def test_shared_beginnings_are_prefilled_once():
    """Counting the tokens that pass through the model: the edges of the prefix tree, and no more."""
    model = random_model()
    sequences = [(*range(3, 3 + k), 200 + k, 201, 202) for k in (5, 50, 20, 35)]
    passed = []
    model.get_input_embeddings().register_forward_hook(lambda _, inputs, __: passed.append(inputs[0].numel()))
    dict(generate(model, [Request(str(i), s, 1) for i, s in enumerate(sequences)]))
    tree = {s[: i + 1] for s in sequences for i in range(len(s))}
    assert sum(passed) == len(tree) == 50 + 4 * 3


def test_on_a_gpu_prompts_of_one_length_are_read_whole_in_one_pass(monkeypatch):
    """The GPU is made up; counting the prompts and tokens of each pass, and that none needs a mask."""
    model, lengths = random_model(), [20, 7, 20, 20, 33, 7, 20]
    rng = torch.Generator().manual_seed(1)
    asked = [
        Request(str(i), tuple(torch.randint(3, 300, (n,), generator=rng).tolist()), 4) for i, n in enumerate(lengths)
    ]
    expected = {request.key: one_by_one(model, request.prompt, 4) for request in asked}
    monkeypatch.setattr(generation, "_reads_whole", lambda model: True)
    monkeypatch.setattr(generation, "TOGETHER", 60)
    passes, room = [], []
    model.register_forward_pre_hook(lambda _, args, named: passes.append((args[0].shape, named)), with_kwargs=True)
    monkeypatch.setattr(generation.kv_cache, "cache_tokens", lambda model, read, at_once: room.append(read) or 10**6)
    assert dict(generate(model, asked)) == expected
    read = [(tuple(shape), "attention_mask" in named) for shape, named in passes if shape[1] > 1]
    assert read == [((2, 7), False), ((3, 20), False), ((1, 20), False), ((1, 33), False)]
    assert room == [60]  # what is held a second time is one pass


def test_out_of_memory_halves_the_batch_and_goes_on(monkeypatch):
    model = random_model()
    requests = [Request(str(i), prompt, 6) for i, prompt in enumerate(prompts(9))]
    expected = dict(generate(model, requests))
    real, sizes = generation._decode, []

    def small_machine(model, prefix, batch):
        sizes.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return real(model, prefix, batch)

    monkeypatch.setattr(generation, "_decode", small_machine)
    assert dict(generate(model, requests)) == expected
    assert sizes[:3] == [9, 4, 2] and max(s for s in sizes if s <= 2) == 2
