"""Perplexity of SmolLM2-135M, extended to twice its length, in float32 and bfloat16: values and tokens/s."""

from __future__ import annotations

import numpy as np
import torch

from core import rope
from core.extend import extend
from eval import perplexity
from experiments.kit import command_line, load_model, texts
from tools.bench.gpu import kit

WINDOWS = 4


def main() -> None:
    part, _ = kit.start(__doc__)
    name = "tiny" if part.toy else "smollm2"
    lengths = (64, 128) if part.toy else (8192, 16384)
    (book,) = texts.books(1)
    for dtype in ("float32", "bfloat16"):
        loaded = load_model.load(name, dtype)
        model = extend(loaded.model, rope.OURS, 2)
        for length in lengths:
            tokens = texts.tokens(loaded.tokenizer, book.text, (WINDOWS + 1) * length // 2)
            spans = perplexity.windows(len(tokens), length, length // 2)
            list(perplexity.window_losses(model, tokens, spans[:1]))  # warms up
            started = kit.clock()
            losses = list(perplexity.window_losses(model, tokens, spans))
            read = sum(end - begin for begin, end, _ in spans)
            what = f"perplexity, {dtype}, {length} tokens"
            attention = model.config._attn_implementation
            part.add(what, read / (kit.clock() - started), "tokens/s", attention, name)
            part.add(what, float(np.exp(np.concatenate(losses).mean())), "", attention, name)
        del model, loaded
        torch.cuda.empty_cache()


if __name__ == "__main__":
    command_line.run(main)
