"""Compare this implementation with a plain one on the same work: seconds and peak memory.

    python -m tools.bench [selection] [perplexity] [generation] [training]

- selection: the histograms that DPRoPE needs at s = 2 and 4. Plain is what the authors' released code does, a loop over
  every pair and position. It uses no tensors here, so it is faster than theirs.
- perplexity: plain code calls the model on each window and converts all logits to float32.
- generation: plain code calls transformers' `generate` for one prompt after another.
- training: steps of a small Llama with SmolLM2's vocabulary, so that the logits dominate memory. Plain is a bare
  Hugging Face Trainer.

Each way runs twice, in a process of its own each time, so that its peak memory is measured alone. The ways take turns,
so that a slow phase of the machine affects both. What they compute must agree.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import transformers

from core.angles import angle_counts
from core.rope import RopeGeometry
from eval import perplexity
from eval.generation import Request, generate
from experiments.base_models.model import Training
from experiments.kit import command_line, texts
from experiments.kit.base_model import BaseModel
from experiments.kit.records import environment
from experiments.training.trainer import Trainer, training_arguments

GEOMETRY, INTERVALS = RopeGeometry(head_dim=128, base=10000.0, context_length=4096), 360
STRIDE = 256
BATCH, STEPS = 4, 6
SMALL = {
    "vocab_size": 49152, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4,
    "num_attention_heads": 2,
}  # fmt: skip


def selection(count: Callable[[np.ndarray, int], np.ndarray | list], length: int) -> Callable[[], list]:
    theta = GEOMETRY.inv_freq
    needed = [pair for s in (2, 4) for pair in ((theta, length), (theta / s, length * s), (theta, length * s))]
    return lambda: [row for inv_freq, positions in needed for row in np.asarray(count(inv_freq, positions)).tolist()]


def counts_plain(inv_freq: np.ndarray, length: int) -> list[list[int]]:
    """Count one position at a time, in float64."""
    counts = [[0] * INTERVALS for _ in inv_freq]
    for row, theta in zip(counts, inv_freq.tolist()):
        for m in range(length):
            row[int(m * theta % (2 * math.pi) * (INTERVALS / (2 * math.pi))) % INTERVALS] += 1
    return counts


def evaluation(prepare: Callable, work: Callable, length: int) -> Callable[[], list]:
    base = BaseModel("smollm2")
    loaded = SimpleNamespace(model=base.load(), tokenizer=base.tokenizer)
    inputs = prepare(loaded, length)
    return lambda: work(loaded, inputs)


def windows(loaded, length: int) -> tuple[torch.Tensor, list[tuple[int, int, int]]]:
    tokens = _text(loaded, length + 2 * STRIDE)
    return tokens, perplexity.windows(len(tokens), length, STRIDE)


def losses_ours(loaded, inputs) -> list[float]:
    return np.concatenate(list(perplexity.window_losses(loaded.model, *inputs))).tolist()


@torch.inference_mode()
def losses_plain(loaded, inputs) -> list[float]:
    tokens, spans = inputs
    losses = []
    for begin, end, first in spans:
        logits = loaded.model(tokens[None, begin:end]).logits.float()
        window = torch.nn.functional.cross_entropy(logits[0, :-1], tokens[begin + 1 : end], reduction="none")
        losses += window[first - end :].tolist()
    return losses


def prompts(loaded, length: int) -> list[Request]:
    tokens = _text(loaded, 8 * length).tolist()
    return [Request(str(i), tuple(tokens[i * length : (i + 1) * length - 37 * i]), 128) for i in range(8)]


def generate_ours(loaded, requests: list[Request]) -> list[list[int]]:
    tokens = dict(generate(loaded.model, requests))
    return [tokens[request.key] for request in requests]


def generate_plain(loaded, requests: list[Request]) -> list[list[int]]:
    end = loaded.tokenizer.eos_token_id
    answers = []
    for request in requests:
        prompt = torch.tensor([request.prompt])
        limits = {"do_sample": False, "max_new_tokens": request.max_new_tokens, "pad_token_id": end}
        out = loaded.model.generate(prompt, attention_mask=torch.ones_like(prompt), **limits)
        answers.append([token for token in out[0, prompt.shape[1] :].tolist() if token != end])
    return answers


def _text(loaded, count: int) -> torch.Tensor:
    (book,) = texts.books(1)
    return loaded.tokenizer(book.text[: 7 * count], add_special_tokens=False, return_tensors="pt").input_ids[0, :count]


class BareTrainer(transformers.Trainer):
    """Hugging Face's Trainer, in the order of the data, as in ours."""

    def __init__(self, model, arguments, data) -> None:
        super().__init__(model=model, args=arguments, train_dataset=data)

    def _get_train_sampler(self, train_dataset=None):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def training(kind: Callable, length: int) -> Callable[[], list]:
    config = transformers.LlamaConfig(**SMALL, max_position_embeddings=length, tie_word_embeddings=True)
    torch.manual_seed(0)
    rows = torch.randint(SMALL["vocab_size"], (BATCH * STEPS, length))
    settings = Training(batch=BATCH, device_batch=BATCH, learning_rate=1e-4, checkpointing=False)
    arguments = training_arguments(settings, STEPS, 0, Path(tempfile.mkdtemp()), save_strategy="no")
    data = [{"input_ids": tokens, "labels": tokens} for tokens in rows]
    trainer = kind(transformers.LlamaForCausalLM(config), arguments, data)

    def work() -> list[float]:
        trainer.train()
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]

    return work


# Each work: its tokens; what prepares it; and the code that each way gives to that.
WORK = {
    "selection": (4096, selection, {"ours": (angle_counts,), "plain": (counts_plain,)}),
    "perplexity": (8192, evaluation, {"ours": (windows, losses_ours), "plain": (windows, losses_plain)}),
    "generation": (1024, evaluation, {"ours": (prompts, generate_ours), "plain": (prompts, generate_plain)}),
    "training": (2048, training, {"ours": (Trainer,), "plain": (BareTrainer,)}),
}


def run(name: str, way: str, length: int) -> tuple[tuple[float, float], list]:
    """Run one way in this process: (its seconds, its peak memory in MB), and what it computes."""
    _, prepare, ways = WORK[name]
    work = prepare(*ways[way], length)
    started = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    return (seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024), result


def alone(name: str, way: str) -> tuple[tuple[float, float], list]:
    """What :func:`run` returns in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as one:
        return one.submit(run, name, way, WORK[name][0]).result()


def agreement(ours: list, plain: list) -> str:
    if isinstance(plain[0], float):
        return f"largest difference {np.abs(np.subtract(ours, plain)).max():.1e}"
    return f"{sum(a == b for a, b in zip(ours, plain, strict=True))} of {len(plain)} equal"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"work to compare (default all): {', '.join(WORK)}")
    names = parser.parse_args().names or list(WORK)
    if unknown := set(names) - set(WORK):
        parser.error(f"there is no work {min(unknown)!r}; choose among {', '.join(WORK)}")
    for name in names:
        runs = [alone(name, way) for way in ("ours", "plain") * 2]
        (ours, result), (plain, expected) = (
            (np.mean([figures for figures, _ in of], axis=0), of[0][1]) for of in (runs[::2], runs[1::2])
        )
        print(
            f"{name} at {WORK[name][0]} tokens: {ours[0]:.3g} s against {plain[0]:.3g} s "
            f"({plain[0] / ours[0]:.2f} × as fast), peak {ours[1]:.0f} MB against {plain[1]:.0f} MB; "
            f"{agreement(result, expected)}",
            flush=True,
        )
    print(json.dumps(environment()))


if __name__ == "__main__":
    command_line.run(main)
