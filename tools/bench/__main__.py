"""A few minutes of one H100 (or A100, 80 GB): what a CPU cannot show of the paper's scale.

    timeout 9m python -m tools.bench [PART ...] [--toy] [--output CSV]

What was made faster is measured beside what it replaced. Rows, each with the device, the versions and the commit, are
added to tools/bench/results/gpu.csv. --toy takes tiny sizes and any machine; its rows go to build/gpu-toy.csv and mean
nothing.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from core.errors import InputError
from core.huggingface.attention import sdpa
from eval import generation
from eval.generation import Request
from experiments.kit import command_line
from experiments.kit.base_model import BaseModel
from experiments.kit.processes import device
from experiments.kit.records import ROOT, environment
from experiments.training.loss import HeadLoss

LARGE, SMALL = "llama2-7b", "smollm2"
TOY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 256}
COLUMNS = ("what", "model", "engine", "value", "unit", "device", "versions", "commit")


@dataclass(frozen=True)
class Bench:
    """One run.

    Attributes:
        toy: use tiny sizes on any machine, to show that the code runs; the numbers mean nothing.
        output: the CSV file that rows are added to.
    """

    toy: bool
    output: Path

    def build(self, name: str, layers: int, dtype: torch.dtype) -> LlamaForCausalLM:
        """A model of a base model's widths with random weights; in float32 on a CPU, where bfloat16 may be slow."""
        sizes = TOY if self.toy else BaseModel(name).architecture.to_dict() | {"num_hidden_layers": layers}
        torch.manual_seed(0)
        with torch.device(device()):
            dtype = dtype if torch.cuda.is_available() else torch.float32
            return LlamaForCausalLM._from_config(LlamaConfig(**sizes), dtype=dtype).eval()

    def add(self, what: str, value: float, unit: str, engine: str, model: str) -> None:
        """Print a row and add it to the CSV file, which is created if needed.

        Args:
            what: what is measured, such as "a pass over 16384 tokens in float32".
            engine: the code that is measured, where several do the same.
            model: whose sizes the one with random weights has.
        """
        ran = environment()
        versions = " ".join(f"{package}={version}" for package, version in ran["packages"].items())
        model = "toy" if self.toy else f"{model}, random weights"
        print(f"{what}, {engine}: {value:.5g} {unit}", flush=True)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with self.output.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(COLUMNS)
            writer.writerow((what, model, engine, f"{value:.5g}", unit, ran["device"], versions, ran["commit"]))


def training_steps(bench: Bench) -> None:
    """Training steps that recompute activations and that keep them: tokens/s and GB."""
    # Weights in bfloat16, as under ZeRO-3; and in float32 under autocast, as on one GPU.
    for name, layers, dtype, sequences in ((LARGE, 4, torch.bfloat16, 1), (SMALL, 30, torch.float32, 4)):
        model = bench.build(name, layers, dtype).train()
        optimizer, loss = torch.optim.AdamW(model.parameters(), 1e-5, fused=True), HeadLoss(model)

        def step(tokens: torch.Tensor, model=model, optimizer=optimizer, loss=loss) -> None:
            on_gpu = tokens.device.type == "cuda"
            with torch.autocast(tokens.device.type, torch.bfloat16, enabled=on_gpu and model.dtype == torch.float32):
                total = loss(model, {"input_ids": tokens}, tokens)
            total.div(tokens.numel()).backward()
            optimizer.step()
            optimizer.zero_grad()

        step(random_tokens(model, 1, 64))  # allocates AdamW's moments
        length = 64 if bench.toy else 16384
        what = f"training step, {layers} layers, {sequences} × {length} tokens"
        for engine, change in (
            ("recomputed", lambda model: model.activation_checkpointing_enable({"use_reentrant": False})),
            ("kept", lambda model: model.activation_checkpointing_disable()),
        ):
            change(model)
            seconds, held = timed(partial(step, random_tokens(model, sequences, length)))
            bench.add(what, sequences * length / seconds, "tokens/s", engine, name)
            bench.add(what, held, "GB beside weights and moments", engine, name)


def passkeys(bench: Bench) -> None:
    """Prompts of 4k to 20k tokens, half of each as the one before: read once each, and answered in two ways."""
    model, count, new = bench.build(SMALL, 30, torch.bfloat16), 2 if bench.toy else 10, 12
    prompts = []
    for length in (32, 48) if bench.toy else range(4096, 20481, 4096):
        rows = random_tokens(model, count, length)
        rows[:, : length // 2] = rows[0, : length // 2]
        prompts += [tuple(row.tolist()) for row in rows]
    requests = [Request(str(i), prompt, new, min_new_tokens=new) for i, prompt in enumerate(prompts)]

    @torch.inference_mode()
    def read_once() -> None:
        for prompt in prompts:
            model(torch.tensor([prompt], device=model.device), use_cache=False, logits_to_keep=1)

    what = f"{len(prompts)} prompts of {len(prompts[0])} to {len(prompts[-1])} tokens"
    bench.add(what, timed(read_once, 1)[0], "s", "each read once, no answer", SMALL)
    for engine, whole in (("prefixes shared", False), ("whole, in groups of one length", True)):
        with mock.patch.object(generation, "_reads_whole", lambda model, whole=whole: whole):
            bench.add(what, timed(lambda: dict(generation.generate(model, requests)), 1)[0], "s", engine, SMALL)


def float32_attention(bench: Bench) -> None:
    """A pass over 16k tokens in float32, by transformers' attention and by ours: seconds and GB."""
    model = bench.build(SMALL, 30, torch.float32)
    tokens = random_tokens(model, 1, 64 if bench.toy else 16384)

    @torch.inference_mode()
    def read() -> None:
        model(tokens, use_cache=False, logits_to_keep=1)

    for engine, function in (("transformers", sdpa_attention_forward), ("ours", sdpa)):
        AttentionInterface.register("sdpa", function)
        for value, unit in zip(timed(read), ("s", "GB"), strict=True):
            bench.add(f"a pass over {tokens.shape[1]} tokens in float32", value, unit, engine, SMALL)


def random_tokens(model: LlamaForCausalLM, *shape: int) -> torch.Tensor:
    """Random token ids of this shape, where the model is; the same for the same shape."""
    ids = torch.randint(3, model.config.vocab_size, shape, generator=torch.Generator().manual_seed(shape[-1]))
    return ids.to(model.device)


def timed(work: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """(median seconds of `work`, GB at its peak beyond what was held before); one more run warms up.

    Without a GPU there are no GB.
    """
    on_gpu, held, seconds = torch.cuda.is_available(), torch.cuda.memory_allocated(), []
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats + 1):
        started = time.perf_counter()
        work()
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return sorted(seconds[1:])[repeats // 2], (torch.cuda.max_memory_allocated() - held) / 1e9


PARTS = {"training": training_steps, "passkeys": passkeys, "attention": float32_attention}


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m tools.bench")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"parts to run: {', '.join(PARTS)} (default all)")
    parser.add_argument("--toy", action="store_true", help="use tiny sizes, even without a GPU; numbers mean nothing")
    parser.add_argument("--output", type=Path, metavar="CSV", help="add rows to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {min(unknown)!r}; choose among {', '.join(PARTS)}")
    if not (arguments.toy or torch.cuda.is_available()):
        raise InputError("there is no GPU here; give --toy to try the code at tiny sizes.")
    default = ROOT / ("build/gpu-toy.csv" if arguments.toy else "tools/bench/results/gpu.csv")
    bench = Bench(arguments.toy, arguments.output or default)
    for part in arguments.parts or PARTS:
        PARTS[part](bench)


if __name__ == "__main__":
    command_line.run(main)
