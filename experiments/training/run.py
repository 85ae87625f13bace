"""A training run on disk: its settings, its progress, and its result as one directory that appears whole.

While it trains, a run lives in `OUTPUT.unfinished`. `checkpoint-N` there is its progress, with a manifest that states
the run. When it is done, `OUTPUT` appears by a rename: a stock Hugging Face checkpoint with `training.json`, `loss.png`
and `tensorboard/` beside the weights.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from core import files
from core.errors import InputError
from core.extend import export
from experiments.kit import records
from experiments.training import checkpoint, launch
from experiments.training.trainer import TENSORBOARD, Trainer

FACTS = "training.json"
_FINISHED = "finished"
_LEFT = checkpoint.SAVING, TENSORBOARD, _FINISHED  # what else is in a run's directory, beside its checkpoints
TRAINED_BY = records.code_files("experiments.finetune")


class Run:
    """One run and its directories.

    Args:
        output: the finished run's directory.
        settings: everything that decides the result, as JSON values; `identity` is added to it.
    """

    def __init__(self, output: Path, settings: dict) -> None:
        # Convert to JSON and back, so that it compares equal to what is read from a file.
        settings = json.loads(json.dumps(settings, default=str))
        self.settings = settings | {"identity": records.identity(**settings)}
        self.output = Path(os.path.abspath(output))  # so that even "." has a name
        self.folder = Path(f"{self.output}.unfinished")

    @property
    def is_done(self) -> bool:
        """Whether the finished directory exists; InputError if it holds another run or something else."""
        if not os.path.lexists(self.output):
            return False
        if not (self.output / FACTS).is_file():
            raise InputError(f"{self.output} exists and holds no training run; give another --output, or remove it.")
        there = self.read()
        if there.get("identity") != self.settings["identity"]:  # what is asked for may lack what it states
            differing = records.difference(there, self.settings) or "another identity"
            raise InputError(f"{self.output} is a run with {differing}; give another --output, or remove it.")
        return True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside the context, no other command trains to this output. Every process calls this.

        Raises:
            InputError: another command does.
        """
        with contextlib.ExitStack() as lock:
            launch.once(lambda: lock.enter_context(files.lock(self.output)), launch.processes()[0] == 0)
            yield

    def begin(self, processes: int, data_sha256: str) -> dict:
        """Check that the run can resume from its directory's checkpoint, or clear the directory if there is none.

        Every process calls this.

        Args:
            processes: how many processes train together; DeepSpeed's checkpoints are divided among as many.
            data_sha256: the SHA-256 of all tokens.

        Returns:
            the contents of the manifests of this run's checkpoints.

        Raises:
            InputError: the checkpoint is incomplete, or belongs to another run, number of processes, data or code.
        """
        facts = checkpoint.facts(self.settings | {"processes": processes, "data_sha256": data_sha256}, *TRAINED_BY)

        def prepare() -> None:
            if checkpoint.whole(self.folder, facts) is None:
                self.clear()  # leftovers without a checkpoint, so nothing is lost
            files.remove(self.folder / checkpoint.SAVING)

        launch.once(prepare, launch.processes()[0] == 0)
        return facts

    def sweep(self) -> None:
        """Remove what is left in a finished run's directory, unless a checkpoint there is another run's.

        A checkpoint without a manifest was being removed when a kill came.
        """
        left = checkpoint.last(self.folder)
        manifest = left and left / checkpoint.MANIFEST
        if not (manifest and manifest.is_file()) or self.settings["identity"] in manifest.read_text(encoding="utf-8"):
            self.clear()

    def clear(self) -> None:
        """Remove a run's files from its directory, and the directory itself if it is then empty."""
        for path in (*checkpoint.checkpoints(self.folder), *(self.folder / name for name in _LEFT)):
            files.remove(path)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def finish(self, trainer: Trainer, tokenizer, facts: dict) -> None:
        """Write the finished directory. Every process calls this.

        Args:
            trainer: the trainer, at the end of training.
            facts: more facts for `training.json`.
        """
        model = trainer.accelerator.unwrap_model(trainer.model)
        whole: contextlib.AbstractContextManager = contextlib.nullcontext()
        if trainer.is_deepspeed_enabled:  # gather the weights that ZeRO-3 has divided
            import deepspeed

            whole = deepspeed.zero.GatheredParameters(list(model.parameters()))
        with whole:
            if trainer.is_world_process_zero():
                self._write(trainer, model, tokenizer, facts)
        trainer.accelerator.wait_for_everyone()

    def _write(self, trainer: Trainer, model, tokenizer, facts: dict) -> None:
        finished = self.folder / _FINISHED
        files.remove(finished)
        said = {key: self.settings[key] for key in ("steps", "batch", "length", "learning_rate", "seed")}
        told = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in said.items())
        export(model, finished, tokenizer, f"## Training\n\nFine-tuned: {told}. `{FACTS}` has all settings and losses.")
        history = [entry for entry in trainer.state.log_history if "loss" in entry]
        losses = [entry["loss"] for entry in history]
        seconds = [round(entry["seconds"], 4) for entry in history]
        ran = {"seconds": round(sum(seconds), 1), "seconds_per_step": seconds, "environment": records.environment()}
        files.write_json(finished / FACTS, self.settings | facts | {"losses": losses} | ran)
        plot_loss(losses, finished / "loss.png")
        shutil.copytree(self.folder / TENSORBOARD, finished / TENSORBOARD)
        finished.rename(self.output)
        self.clear()

    def read(self) -> dict:
        """The finished run's `training.json`."""
        return files.read_json(self.output / FACTS, f"remove {self.output} to train it again")


def plot_loss(losses: list[float], file: Path) -> None:
    """Draw the loss of every step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 2.8), layout="constrained")
    axes = figure.subplots()
    steps = range(1, len(losses) + 1)
    axes.plot(steps, losses, color="#0072B2", linewidth=0.8, marker="." if len(losses) < 50 else None)
    axes.set(xlabel="step", ylabel="loss (nats per token)")
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=150)
