"""Evaluation: its speed at SmolLM2's and LLaMA2-7B's widths."""

from __future__ import annotations

from unittest import mock

import torch
from transformers import AttentionInterface, LlamaForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from core.huggingface.attention import sdpa
from eval import generation, kv_cache
from eval.generation import Request
from experiments.kit import base_model
from tools.bench.gpu.kit import SMALL, Bench, clock, timed

MOST = 32  # the most prompts per length, so that a length takes seconds


def passkeys(bench: Bench) -> None:
    """Prompts of 4k to 20k tokens, half of each as the one before: read once each, and answered in two ways."""
    model, count, new = bench.build(30, torch.bfloat16, SMALL), 2 if bench.toy else 10, 12
    rows = [
        bench.tokens(count, length, seed=length) for length in ((32, 48) if bench.toy else range(4096, 20481, 4096))
    ]
    for same in rows:
        same[:, : same.shape[1] // 2] = same[0, : same.shape[1] // 2]
    prompts = [tuple(row.tolist()) for same in rows for row in same]
    requests = [Request(str(i), prompt, new, min_new_tokens=new) for i, prompt in enumerate(prompts)]

    @torch.inference_mode()
    def once() -> None:
        for prompt in prompts:
            model(torch.tensor([prompt], device=model.device), use_cache=False, logits_to_keep=1)

    what = f"{len(prompts)} prompts of {len(prompts[0])} to {len(prompts[-1])} tokens"
    bench.add(what, timed(once, 1)[0], "s", "each read once, no answer", SMALL)
    for engine, whole in (("prefixes shared", False), ("whole, in groups of one length", True)):
        with mock.patch.object(generation, "_reads_whole", lambda model, whole=whole: whole):
            bench.add(what, timed(lambda: dict(generation.generate(model, requests)), 1)[0], "s", engine, SMALL)


def attention(bench: Bench) -> None:
    """A pass over 16k tokens in float32, by transformers' attention and by ours: seconds and GB."""
    model = bench.build(30, torch.float32, SMALL)
    tokens = bench.tokens(1, 64 if bench.toy else 16384).to(model.device)

    @torch.inference_mode()
    def read() -> None:
        model(tokens, use_cache=False, logits_to_keep=1)

    for engine, function in (("transformers", sdpa_attention_forward), ("ours", sdpa)):
        AttentionInterface.register("sdpa", function)
        for value, unit in zip(timed(read), ("s", "GB"), strict=True):
            bench.add(f"a pass over {tokens.shape[1]} tokens in float32", value, unit, engine, SMALL)


def serve(bench: Bench) -> None:
    """Prefill and decode of 32 layers: tokens/s."""
    model = bench.build(32, torch.bfloat16)
    attention = base_model.attention("bfloat16") or "sdpa"
    model.set_attn_implementation(attention)
    new = 8 if bench.toy else 128
    for length in (32, 64) if bench.toy else (4096, 8192, 16384):
        room = kv_cache.cache_tokens(model, length, generation.FIRST_PASS)
        count = max(1, min(2 if bench.toy else MOST, room // (length + new)))
        prompts = [tuple(row) for row in bench.tokens(count, length).tolist()]
        _generate(model, prompts, 2)  # warms up
        reading, writing = _generate(model, prompts, new)
        what = f"{length} tokens, {count} prompts"
        bench.add(f"prefill, {what}", count * length / reading, "tokens/s", attention)
        bench.add(f"decode, {what}", count * (new - 1) / writing, "tokens/s", attention)


def _generate(model: LlamaForCausalLM, prompts: list[tuple[int, ...]], new: int) -> tuple[float, float]:
    """(seconds to read all prompts, seconds to generate from then on), in one batch.

    Generation begins with the first forward pass over one token per prompt.
    """
    requests = [Request(str(i), prompt, new, min_new_tokens=new) for i, prompt in enumerate(prompts)]
    decoding: list[float] = []

    def look(module, args, kwargs) -> None:
        if not decoding and (args[0] if args else kwargs["input_ids"]).shape[1] == 1:
            decoding.append(clock())

    hook = model.register_forward_pre_hook(look, with_kwargs=True)
    started = clock()
    answers = dict(generation.generate(model, requests, cache_tokens=len(prompts) * (len(prompts[0]) + new)))
    ended = clock()
    hook.remove()
    assert all(len(tokens) == new for tokens in answers.values()), "a continuation ended early"
    return decoding[0] - started, ended - decoding[0]
