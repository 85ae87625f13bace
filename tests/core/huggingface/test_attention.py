"""Attention in less memory: the same as transformers' and as plain products, and what it holds at
its peak."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from core.huggingface import attention
from tests.models import checkpoint

MODULE = SimpleNamespace(is_causal=True, num_key_value_groups=4)


def drawn(count, tokens=None):
    generator = torch.Generator().manual_seed(0)
    shapes = (1, 8, count, 16), (1, 2, tokens or count, 16), (1, 2, tokens or count, 16)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def window(count, tokens, width=5):
    """True where a query sees a token: of the last `width`, itself included."""
    back = torch.arange(tokens - count, tokens)[:, None] - torch.arange(tokens)[None]
    return ((back >= 0) & (back < width))[None, None]


@pytest.mark.parametrize(
    "count, tokens, masked", [(40, 40, False), (40, 40, True), (23, 60, True), (1, 60, True)]
)
def test_it_is_the_attention_of_plain_products(monkeypatch, count, tokens, masked):
    monkeypatch.setattr(attention, "QUERIES", 8)
    monkeypatch.setattr(attention, "_has_no_kernel", lambda query: True)
    query, key, value = drawn(count, tokens)
    mask = window(count, tokens) if masked else None
    seen = mask if masked else window(count, tokens, tokens)
    scores = query @ key.repeat_interleave(4, 1).mT / 4
    expected = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ value.repeat_interleave(4, 1)
    output, _ = attention.sdpa(MODULE, query, key, value, mask)
    torch.testing.assert_close(output, expected.transpose(1, 2), rtol=1e-4, atol=1e-5)


def test_a_mask_of_many_queries_is_not_copied(monkeypatch):
    """What torch has allocated at its peak, with the mask made before: here and in
    transformers'."""
    monkeypatch.setattr(attention, "QUERIES", 64)
    inputs = drawn(2000)
    mask = torch.ones(1, 1, 2000, 2000, dtype=torch.bool).tril_()
    most = {}
    for compute in (attention.sdpa, sdpa_attention_forward):
        activity = [torch.profiler.ProfilerActivity.CPU]
        with (
            torch.inference_mode(),
            torch.profiler.profile(activities=activity, profile_memory=True) as profile,
        ):
            compute(MODULE, *inputs, mask)
        events = sorted(
            profile.profiler.kineto_results.events(), key=lambda event: event.start_ns()
        )
        most[compute] = max(
            itertools.accumulate(e.nbytes() for e in events if e.name() == "[memory]")
        )
    copied = 2000 * 2000 * 4  # bytes, as float32
    assert most[attention.sdpa] < copied / 3 and most[sdpa_attention_forward] > copied


def test_a_model_that_is_loaded_for_an_experiment_attends_so(monkeypatch, tmp_path):
    from experiments.kit.model import resolve

    called = []
    monkeypatch.setattr(
        attention, "_has_no_kernel", lambda query: called.append(query.shape) or True
    )
    model = resolve(str(checkpoint(tmp_path / "model"))).load()
    with torch.inference_mode():
        model(torch.arange(3, 23)[None])
    assert called == [(1, 4, 20, 16)] * 2
