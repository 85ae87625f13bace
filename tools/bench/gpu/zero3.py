"""ZeRO-3 with one process: a fine-tune that is killed after a checkpoint and resumed ends with the same losses.

With several processes, training uses ZeRO-3 anyway. Here DeepSpeed is requested explicitly, and torchrun starts one
process, which on a GPU means NCCL. The model is read from disk in bfloat16, as LLaMA2 is, and extended once by a fixed
scaling and once by a learned one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from transformers import TrainerCallback

from core import clex, files, rope
from core.extend import extend
from core.huggingface.embedding import rope_geometry
from experiments.base_models.model import Training
from experiments.kit import command_line, load_model
from experiments.kit.records import ROOT
from experiments.training import checkpoint, launch
from experiments.training.trainer import DEEPSPEED, Trainer, training_arguments
from tools.bench.gpu.kit import Bench

LAYERS, STEPS, KILLED_AFTER = 1, 3, 2
RESULT = "result.json"
LEARNED = next(name for name, method in rope.METHODS.items() if method.start)


class Killed(TrainerCallback):
    """Kills the process, as a power cut would, once a checkpoint is complete."""

    def on_save(self, *_, **__):
        os.kill(os.getpid(), signal.SIGKILL)


def kill_and_resume(bench: Bench, methods: tuple[str, ...] = (rope.OURS, LEARNED)) -> None:
    """Train once without and once with a kill, from the same model."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        bench.build(LAYERS, torch.bfloat16).save_pretrained(model)
        load_model.byte_tokenizer().save_pretrained(model)
        for method in methods:
            started = time.perf_counter()
            whole = launched(bench, Path(folder) / method / "whole")
            assert launched(bench, Path(folder) / method / "killed") is None, "it was to be killed"
            resumed = launched(bench, Path(folder) / method / "killed")
            name = f"{method}, ZeRO-{whole['stage']} on {whole['backend']}"
            apart = max(abs(a - b) for a, b in zip(whole["losses"], resumed["losses"], strict=True))
            bench.add(f"{name}, largest difference of a loss after kill and resume", apart, "nats", "trainer")
            bench.add(f"{name}, first loss", whole["losses"][0], "nats", "trainer")
            bench.add(f"{name}, three runs", time.perf_counter() - started, "s", "trainer")


def launched(bench: Bench, work: Path) -> dict | None:
    """The results of a run; None if it was killed after a checkpoint."""
    log = spawn([str(work), *["--toy"] * bench.toy])
    if (work / RESULT).is_file():
        return files.read_json(work / RESULT, "run it again")
    if checkpoint.last(work) is None:
        raise RuntimeError(f"a training process failed:\n{log[-4000:]}")
    return None


def spawn(options: list[str]) -> str:
    """Run one process under torchrun, and return its standard error."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    command += ["-m", "tools.bench.gpu.zero3", *options]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stderr


def main() -> None:
    """Train in this process; the first run in a directory named "killed" dies after its checkpoint."""
    work = Path(sys.argv[1])
    bench = Bench("--toy" in sys.argv, work)
    dies = work.name == "killed" and not work.exists()
    settings = Training(batch=2, device_batch=1, learning_rate=1e-4, save_every=KILLED_AFTER)
    changes = {"deepspeed": str(DEEPSPEED), "optim": "adamw_torch"}
    if not torch.cuda.is_available():
        launch.join_on_cpu()
        changes["accelerator_config"] = {"use_configured_state": True}
    arguments = training_arguments(settings, STEPS, 0, work, **changes)
    model = load_model.load(str(work.parent.parent / "model"), "bfloat16" if arguments.bf16 else "float32").model
    start, method = rope.get(work.parent.name).start, work.parent.name
    torch.manual_seed(0)  # for newly initialised matrices
    model = start(model, rope_geometry(model), 2) if start else extend(model, method, 2)
    if arguments.bf16:
        clex.narrow(model, torch.bfloat16)
    sequences = bench.tokens(2 * STEPS, 32 if bench.toy else 2048)
    trainer = Trainer(model, arguments, [{"input_ids": tokens, "labels": tokens} for tokens in sequences])
    if dies:
        trainer.add_callback(Killed())
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    stage, backend = trainer.model_wrapped.zero_optimization_stage(), torch.distributed.get_backend()
    files.write_json(work / RESULT, {"losses": losses, "stage": stage, "backend": backend})


if __name__ == "__main__":
    command_line.run(main)
