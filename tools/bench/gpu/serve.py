"""Speed of reading prompts and generating tokens by eval.generation, with a model of LLaMA2-7B's shape."""

from __future__ import annotations

import torch
from transformers import LlamaForCausalLM

from eval import generation, kv_cache
from experiments.kit import command_line, load_model
from tools.bench.gpu import kit

LAYERS = 32
MOST = 32  # the most prompts per length, so that a length takes seconds


def main() -> None:
    part, _ = kit.start(__doc__)
    model = part.build(LAYERS, torch.bfloat16)
    attention = load_model.attention("bfloat16") or "sdpa" if torch.cuda.is_available() else "sdpa"
    model.set_attn_implementation(attention)
    new = 8 if part.toy else 128
    for length in (32, 64) if part.toy else (4096, 8192, 16384):
        room = kv_cache.cache_tokens(model, length, generation.FIRST_PASS)
        count = max(1, min(2 if part.toy else MOST, room // (length + new)))
        prompts = [tuple(row) for row in part.tokens(count, length).tolist()]
        run(model, prompts, 2)  # warms up
        reading, writing = run(model, prompts, new)
        what = f"{length} tokens, {count} prompts"
        part.add(f"prefill, {what}", count * length / reading, "tokens/s", attention)
        part.add(f"decode, {what}", count * (new - 1) / writing, "tokens/s", attention)


def run(model: LlamaForCausalLM, prompts: list[tuple[int, ...]], new: int) -> tuple[float, float]:
    """(seconds to read all prompts, seconds to generate from then on), in one batch.

    Generation begins with the first forward pass over one token per prompt.
    """
    asked = [generation.Request(str(i), prompt, new, min_new_tokens=new) for i, prompt in enumerate(prompts)]
    decoding: list[float] = []

    def look(module, args, kwargs) -> None:
        if not decoding and (args[0] if args else kwargs["input_ids"]).shape[1] == 1:
            decoding.append(kit.clock())

    hook = model.register_forward_pre_hook(look, with_kwargs=True)
    started = kit.clock()
    made = dict(generation.generate(model, asked, cache_tokens=len(prompts) * (len(prompts[0]) + new)))
    ended = kit.clock()
    hook.remove()
    assert all(len(tokens) == new for tokens in made.values()), "a continuation ended early"
    return decoding[0] - started, ended - decoding[0]


if __name__ == "__main__":
    command_line.run(main)
