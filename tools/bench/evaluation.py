"""Evaluation: its speed at SmolLM2's widths."""

from __future__ import annotations

from unittest import mock

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from core.huggingface.attention import sdpa
from eval import generation
from eval.generation import Request
from tools.bench.kit import SMALL, Bench, timed


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
