"""Compare a training step with that of a bare Hugging Face Trainer on the same model and data: seconds, peak memory.

    python -m tools.bench.training [--lengths 1024 2048] [--steps 6]

The model is a small Llama with SmolLM2's vocabulary, so that the logits dominate memory. Each way runs in its own
process, so that its peak memory is measured alone. The two ways take turns, twice, so that a slow phase of the machine
affects both. The losses must agree.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from torch.utils.data import Dataset

from experiments.base_models.model import Training
from experiments.kit.records import ROOT, environment
from experiments.training.trainer import Trainer, training_arguments

VOCABULARY, BATCH = 49152, 4


class RandomTokens(Dataset):
    """Random tokens; item i is the same every time."""

    def __init__(self, length: int, count: int) -> None:
        self.length, self.count = length, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(VOCABULARY, (self.length,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


class Clock(transformers.TrainerCallback):
    """Notes when each step ended, by wall-clock and by processor time."""

    def on_train_begin(self, *_, **__):
        self.times = [(time.perf_counter(), time.process_time())]

    def on_step_end(self, *_, **__):
        self.times.append((time.perf_counter(), time.process_time()))


class BareTrainer(transformers.Trainer):
    """Hugging Face's Trainer, in the order of the data, as in ours."""

    def _get_train_sampler(self, train_dataset=None):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def one(way: str, length: int, steps: int) -> dict:
    """Train one way in this process."""
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=2,
        max_position_embeddings=length,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    model, data = transformers.LlamaForCausalLM(config), RandomTokens(length, BATCH * steps)
    settings = Training(batch=BATCH, device_batch=BATCH, learning_rate=1e-4, checkpointing=False)
    with tempfile.TemporaryDirectory() as folder:
        arguments = training_arguments(settings, steps, 0, Path(folder), save_strategy="no")
        if way == "ours":
            trainer = Trainer(model, arguments, data)
        else:
            trainer = BareTrainer(model=model, args=arguments, train_dataset=data)
        clock = Clock()
        trainer.add_callback(clock)
        loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        trainer.train()
    wall, processor = np.median(np.diff(clock.times, axis=0)[1:], axis=0)  # the first step warms up
    return {
        "seconds": float(wall),
        "processor_seconds": float(processor),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loaded_mb": loaded / 1024,
        "losses": [entry["loss"] for entry in trainer.state.log_history if "loss" in entry],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[1024, 2048], help="tokens per sequence (default 1024 2048)"
    )
    parser.add_argument("--steps", type=int, default=6, help="training steps in each run (default 6)")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each way (default 2)")
    parser.add_argument("--way", choices=("ours", "bare"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(one(arguments.way, arguments.lengths[0], arguments.steps)))
        return
    for length in arguments.lengths:
        found: dict[str, list[dict]] = {"ours": [], "bare": []}
        for _ in range(arguments.rounds):
            for way, runs in found.items():
                command = [sys.executable, "-m", "tools.bench.training", "--way", way, "--lengths", str(length)]
                command += ["--steps", str(arguments.steps)]
                done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                runs.append(json.loads(done.stdout.splitlines()[-1]))
        ours, bare = (
            {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "losses"}
            for runs in found.values()
        )
        apart = np.abs(np.subtract(found["ours"][0]["losses"], found["bare"][0]["losses"])).max()
        print(
            f"{BATCH} × {length} tokens: {BATCH * length / ours['seconds']:.0f} against "
            f"{BATCH * length / bare['seconds']:.0f} tokens/s ({bare['seconds'] / ours['seconds']:.2f} × as fast; "
            f"{bare['processor_seconds'] / ours['processor_seconds']:.2f} × by processor time), "
            f"peak {ours['peak_mb']:.0f} MB against {bare['peak_mb']:.0f} MB "
            f"({ours['peak_mb'] / bare['peak_mb']:.0%}; before training "
            f"{ours['loaded_mb']:.0f} MB); largest difference of a loss {apart:.1e}"
        )
    print(json.dumps(environment()))


if __name__ == "__main__":
    main()
