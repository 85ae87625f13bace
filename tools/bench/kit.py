"""What the parts share: a model of LLaMA2-7B's widths with random weights, the rows that they add, and the clock."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from experiments.kit.base_model import BaseModel
from experiments.kit.processes import device
from experiments.kit.records import environment

WIDTHS, SMALL = "llama2-7b", "smollm2"
TOY = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 256}
COLUMNS = ("what", "model", "engine", "value", "unit", "device", "versions", "commit")


@dataclass(frozen=True)
class Bench:
    """One run of a part.

    Attributes:
        toy: use tiny sizes on any machine, to show that the code runs; the numbers mean nothing.
        output: the CSV file that rows are added to.
    """

    toy: bool
    output: Path

    def config(self, layers: int, name: str = WIDTHS) -> LlamaConfig:
        """The configuration of a base model, by default LLaMA2-7B, with `layers` layers."""
        sizes = BaseModel(name).architecture.to_dict() | {"num_hidden_layers": layers}
        grouped = 4 if name == WIDTHS else 2
        toy = TOY | {"num_hidden_layers": min(layers, 2), "num_key_value_heads": grouped, "head_dim": 16}
        return LlamaConfig(**sizes | (toy if self.toy else {}))

    def build(self, layers: int, dtype: torch.dtype, name: str = WIDTHS) -> LlamaForCausalLM:
        """A model with random weights, made on the device where it runs."""
        torch.manual_seed(0)
        with torch.device(device()):
            return LlamaForCausalLM._from_config(self.config(layers, name), dtype=self.dtype(dtype)).eval()

    def dtype(self, wanted: torch.dtype) -> torch.dtype:
        """The wanted dtype, but float32 on a CPU, which may multiply bfloat16 a hundred times slower."""
        return wanted if torch.cuda.is_available() else torch.float32

    def tokens(self, *shape: int, seed: int = 0) -> torch.Tensor:
        """Random token ids of this shape, on the CPU."""
        vocabulary = self.config(1).vocab_size
        return torch.randint(3, vocabulary, shape, generator=torch.Generator().manual_seed(seed))

    def add(self, what: str, value: float | str, unit: str, engine: str, model: str = WIDTHS) -> None:
        """Print a row and add it to the CSV file, which is created if needed.

        Args:
            what: what is measured, such as "decode, 4096 tokens, 32 prompts".
            engine: the code that is measured, where several do the same.
            model: whose sizes the one with random weights has.
        """
        ran = environment()
        versions = " ".join(f"{package}={version}" for package, version in ran["packages"].items())
        value = f"{value:.5g}" if isinstance(value, float) else str(value)
        model = "toy" if self.toy else f"{model}, random weights"
        print(f"{what}, {engine}: {value} {unit}", flush=True)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with self.output.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(COLUMNS)
            writer.writerow((what, model, engine, value, unit, ran["device"], versions, ran["commit"]))


def timed(work: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """(median seconds of `work`, GB at its peak beyond what was held before); one more run warms up.

    Without a GPU there are no GB.
    """
    held, seconds = torch.cuda.memory_allocated(), []
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats + 1):
        started = clock()
        work()
        seconds.append(clock() - started)
    return sorted(seconds[1:])[repeats // 2], (torch.cuda.max_memory_allocated() - held) / 1e9


def clock() -> float:
    """The time in seconds, after the GPU has finished its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
