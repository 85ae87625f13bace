"""The work that tools/bench compares, each by our code and by plain code.

- selection: the histograms that DPRoPE needs at s = 2 and 4. Plain is what the authors' released code does, a loop over
  every pair and position. It uses no tensors here, so it is faster than theirs.
- perplexity: plain code calls the model on each window and converts all logits to float32.
- generation: plain code calls transformers' `generate` for one prompt after another.
- training: steps of a small Llama with SmolLM2's vocabulary, so that the logits dominate memory. Plain is a bare
  Hugging Face Trainer.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers

from core.angles import angle_counts
from core.rope import RopeGeometry
from eval import perplexity
from eval.generation import Request, generate
from experiments.base_models.model import Training
from experiments.kit import load_model, texts
from experiments.training.trainer import Trainer, training_arguments

GEOMETRY, INTERVALS = RopeGeometry(head_dim=128, base=10000.0, context_length=4096), 360
STRIDE = 256
BATCH, STEPS = 4, 6
SMALL = {
    "vocab_size": 49152, "hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4,
    "num_attention_heads": 2,
}  # fmt: skip


class Work(NamedTuple):
    """Work to compare: `prepare(*ours, length)` and `prepare(*plain, length)` return what is timed."""

    length: int  # tokens, unless asked otherwise
    prepare: Callable[..., Callable[[], list]]
    ours: tuple[Callable, ...]
    plain: tuple[Callable, ...]


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
    loaded = load_model.load("smollm2")
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


def continuations(loaded, length: int) -> list[Request]:
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


WORK = {
    "selection": Work(4096, selection, (angle_counts,), (counts_plain,)),
    "perplexity": Work(8192, evaluation, (windows, losses_ours), (windows, losses_plain)),
    "generation": Work(1024, evaluation, (continuations, generate_ours), (continuations, generate_plain)),
    "training": Work(2048, training, (Trainer,), (BareTrainer,)),
}
