"""Check that batches too large for memory are halved, with the same answers as batches that fit.

This process may use so little of the GPU's memory that one batch of all prompts does not fit. Without a GPU, a batch of
more than two rows fails as it would on a GPU.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from functools import partial

import torch
from transformers import LlamaForCausalLM

from eval.generation import Request, generate
from eval.log_likelihood import SharedPrefixLM
from experiments.kit import command_line, load_model
from tools.bench.gpu import kit

LAYERS = 4
ROOM = 6e9  # bytes allowed besides the weights
ROWS = 2


@contextlib.contextmanager
def scarce(model: LlamaForCausalLM) -> Iterator[list[str]]:
    """Inside the context, memory is too small for a large batch; the list collects the failures."""
    failed: list[str] = []

    def full(module, args, kwargs) -> None:
        rows = (args[0] if args else kwargs["input_ids"]).shape[0]
        if rows > ROWS:
            failed.append(f"{rows} rows")
            raise torch.OutOfMemoryError("CUDA out of memory.")

    if not torch.cuda.is_available():
        hook = model.register_forward_pre_hook(full, with_kwargs=True)
        try:
            yield failed
        finally:
            hook.remove()
        return
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(model.device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + ROOM) / total))
    before = torch.cuda.memory_stats().get("num_ooms", 0)
    try:
        yield failed
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        failed += ["CUDA"] * (torch.cuda.memory_stats().get("num_ooms", 0) - before)


def main() -> None:
    part, _ = kit.start(__doc__)
    length, count, new = (24, 7, 5) if part.toy else (2048, 48, 16)
    # float32, so that rounding does not change a token.
    model = part.build(LAYERS, torch.float32)
    prompts = [tuple(row[: length - index % 5]) for index, row in enumerate(part.tokens(count, length).tolist())]
    requests = [Request(str(index), prompt, new) for index, prompt in enumerate(prompts)]

    one_by_one = dict(generate(model, requests, cache_tokens=1))
    with scarce(model) as failed:
        together = dict(generate(model, requests, cache_tokens=2**40))
    part.add("generation, halvings", len(failed), "", "eval.generation")
    equal = sum(together[key] == tokens for key, tokens in one_by_one.items())
    part.add(f"generation, answers of {count} equal after halving", equal, "", "eval.generation")

    context = list(prompts[0])
    answers = [(("", ""), context, part.tokens(4, seed=index).tolist()) for index in range(count)]
    make = partial(SharedPrefixLM, model, tokenizer=load_model.byte_tokenizer(), device=load_model.device())
    logging.getLogger("lm_eval").setLevel(logging.ERROR)  # it warns of a model that it did not load itself
    small = make(batch_size=1)._loglikelihood_tokens(answers)
    with scarce(model) as failed:
        large = make(batch_size=count)._loglikelihood_tokens(answers)
    part.add("log-likelihoods, halvings", len(failed), "", "eval.log_likelihood")
    apart = max(abs(a[0] - b[0]) for a, b in zip(small, large))
    part.add("log-likelihoods, largest difference after halving", apart, "nats", "eval.log_likelihood")


if __name__ == "__main__":
    command_line.run(main)
