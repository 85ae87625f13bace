"""What these benchmarks share: the command line, a model of LLaMA2-7B's widths with random weights, and the clock."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from core.errors import InputError
from experiments.kit import command_line, load_model
from experiments.kit.records import ROOT
from tools.bench import rows

WIDTHS = "llama2-7b"
TOY = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 256}


@dataclass(frozen=True)
class Part:
    """One run of a benchmark.

    Attributes:
        toy: use tiny sizes on any machine, to show that the code runs; the numbers mean nothing.
        output: the CSV file that rows are added to.
    """

    toy: bool
    output: Path

    @property
    def model(self) -> str:
        """The random model's name in a row."""
        return "toy" if self.toy else f"{WIDTHS}, random weights"

    def config(self, layers: int) -> LlamaConfig:
        """LLaMA2-7B's configuration with `layers` layers."""
        sizes = load_model.architecture(WIDTHS).to_dict() | {"num_hidden_layers": layers}
        toy = TOY | {"num_hidden_layers": min(layers, 2), "num_key_value_heads": 4, "head_dim": 16}
        return LlamaConfig(**sizes | (toy if self.toy else {}))

    def build(self, layers: int, dtype: torch.dtype) -> LlamaForCausalLM:
        """A model with random weights, made on the device where it runs; on a CPU it is always float32."""
        torch.manual_seed(0)
        with torch.device(load_model.device()):
            model = LlamaForCausalLM._from_config(self.config(layers), dtype=self.dtype(dtype))
        return model.eval()

    def dtype(self, wanted: torch.dtype) -> torch.dtype:
        """The wanted dtype, but float32 on a CPU, which may multiply bfloat16 a hundred times slower."""
        return wanted if torch.cuda.is_available() else torch.float32

    def tokens(self, *shape: int, seed: int = 0) -> torch.Tensor:
        """Random token ids of this shape, on the CPU."""
        vocabulary = self.config(1).vocab_size
        return torch.randint(3, vocabulary, shape, generator=torch.Generator().manual_seed(seed))

    def add(self, what: str, value: float | str, unit: str, engine: str = "", model: str = "", **versions: str):
        """Append one row."""
        rows.append(self.output, [rows.row(what, model or self.model, engine, value, unit, **versions)])


def start(doc: str) -> tuple[Part, argparse.Namespace]:
    """Read the command line of a benchmark.

    Raises:
        InputError: there is no GPU, and --toy was not given.
    """
    parser = command_line.parser(doc)
    parser.add_argument("--toy", action="store_true", help="use tiny sizes, even without a GPU; numbers mean nothing")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="CSV",
        help="add rows here (default tools/bench/results/gpu.csv; with --toy build/gpu-toy.csv)",
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not (arguments.toy or torch.cuda.is_available()):
        raise InputError("there is no GPU here; give --toy to try the code at tiny sizes.")
    default = ROOT / "build" / "gpu-toy.csv" if arguments.toy else rows.RESULTS / "gpu.csv"
    return Part(arguments.toy, arguments.output or default), arguments


def timed(work: Callable[[], object], repeats: int = 3) -> tuple[float, float]:
    """(median seconds of `work`, GB at its peak beyond what was held before); one more run warms up.

    Without a GPU the peak is that of the whole process so far.
    """
    on_gpu, seconds = torch.cuda.is_available(), []
    held = torch.cuda.memory_allocated() if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    for _ in range(repeats + 1):
        started = clock()
        work()
        seconds.append(clock() - started)
    peak = torch.cuda.max_memory_allocated() if on_gpu else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return sorted(seconds[1:])[repeats // 2], (peak - held) / 1e9


def clock() -> float:
    """The time in seconds, after the GPU has finished its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
