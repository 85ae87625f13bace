"""A training run on disk: what it is, where it stands, and its end as one directory that appears whole.

While it trains, a run lives in `OUTPUT.unfinished`: `run.json` says what it is, `checkpoint-N` is where it stands.
When it is done, `OUTPUT` appears by a rename: a stock Hugging Face checkpoint with `training.json`, `loss.png` and
`tensorboard/` beside the weights.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import torch

from core.errors import InputError
from core.extend import export
from experiments.lab import records
from experiments.lab.training.trainer import Trainer, last_checkpoint

FACTS = "training.json"


class Run:
    """One run and its directories.

    Args:
        output: the finished run's directory.
        settings: everything that decides the result, as JSON values; an `identity` is added.
    """

    def __init__(self, output: Path, settings: dict) -> None:
        # Through JSON once, so that it compares equal to what is read back.
        settings = json.loads(json.dumps(settings, default=str))
        self.settings = settings | {"identity": records.identity(**settings)}
        self.output = Path(output)
        self.folder = self.output.with_name(f"{self.output.name}.unfinished")

    @property
    def is_done(self) -> bool:
        """Whether the finished directory is there; InputError if it holds another run or something else."""
        if not self.output.exists():
            return False
        self._must_match(self.output / FACTS)
        return True

    def begin(self, processes: int) -> None:
        """Make the run's directory, or find that it is this run's.

        Args:
            processes: how many train together; DeepSpeed's checkpoints are divided among as many.

        Raises:
            InputError: another run's directory, or another number of processes.
        """
        state = self.folder / "run.json"
        if state.exists():
            self._must_match(state)
            before = json.loads(state.read_text())["processes"]
            if before != processes and last_checkpoint(self.folder):
                raise InputError(
                    f"{self.folder} was begun by {before} processes and cannot go on with {processes}; start as many, "
                    "or remove it."
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        _write_json(state, self.settings | {"processes": processes})

    def _must_match(self, file: Path) -> None:
        if not file.exists():
            raise InputError(f"{file.parent} is there and holds no training run; give another --output, or remove it.")
        before = json.loads(file.read_text())
        for key, value in self.settings.items():
            if key != "identity" and before.get(key) != value:
                raise InputError(
                    f"{file.parent} is a run with {key} {_short(before.get(key))}, not {_short(value)}; "
                    "give another --output, or remove it."
                )

    @contextlib.contextmanager
    def reporting_a_full_disk(self) -> Iterator[None]:
        """Turn a failure to write for want of space into one sentence; the last whole checkpoint stays."""
        try:
            yield
        except Exception as error:
            if not _is_full_disk(error):
                raise
            shutil.rmtree(self.folder / ".saving", ignore_errors=True)
            kept = last_checkpoint(self.folder)
            raise InputError(
                f"no space left on the disk of {self.folder} ({_first_line(error)}); free some and give the same "
                f"command again, which goes on from {kept.name if kept else 'the beginning'}."
            ) from error

    def finish(self, trainer: Trainer, tokenizer, facts: dict) -> None:
        """Write the finished directory; every process calls this.

        Args:
            trainer: trained to its end.
            facts: added to `training.json`.
        """
        model = trainer.accelerator.unwrap_model(trainer.model)
        with _whole_weights(model, trainer.is_deepspeed_enabled):
            if trainer.is_world_process_zero():
                self._write(trainer, model, tokenizer, facts)
        trainer.accelerator.wait_for_everyone()

    def _write(self, trainer: Trainer, model, tokenizer, facts: dict) -> None:
        made = self.folder / "finished"
        shutil.rmtree(made, ignore_errors=True)
        export(model, made, tokenizer)
        history = [entry for entry in trainer.state.log_history if "loss" in entry]
        losses = [entry["loss"] for entry in history]
        seconds = [round(entry["seconds"], 4) for entry in history]
        _write_json(
            made / FACTS,
            self.settings
            | facts
            | {
                "losses": losses,
                "seconds": round(sum(seconds), 1),
                "seconds_per_step": seconds,
                "environment": records.environment(),
            },
        )
        plot_loss(losses, made / "loss.png")
        shutil.copytree(self.folder / "tensorboard", made / "tensorboard")
        made.rename(self.output)
        shutil.rmtree(self.folder)

    def read(self) -> dict:
        """The finished run's `training.json`."""
        return json.loads((self.output / FACTS).read_text())


@contextlib.contextmanager
def _whole_weights(model: torch.nn.Module, sharded: bool) -> Iterator[None]:
    """Under ZeRO-3, every weight gathered on every device."""
    if not sharded:
        yield
        return
    import deepspeed

    with deepspeed.zero.GatheredParameters(list(model.parameters())):
        yield


def plot_loss(losses: list[float], file: Path) -> None:
    """The loss of every step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 2.8), layout="constrained")
    axes = figure.subplots()
    steps = range(1, len(losses) + 1)
    axes.plot(steps, losses, color="#0072B2", linewidth=0.8, marker="." if len(losses) < 50 else None)
    axes.set(xlabel="step", ylabel="loss (nats per token)")
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=150)


def _write_json(file: Path, content: dict) -> None:
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    os.replace(partial, file)


def _is_full_disk(error: Exception) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    # torch and safetensors write through code of their own and say it in words.
    words = ("No space left on device", "PytorchStreamWriter failed writing", "unexpected pos")
    return any(word in str(error) for word in words)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
