"""A fine-tune on disk: its progress, and its result as one directory that appears whole.

While it trains, a fine-tune lives in `OUTPUT.unfinished`. `checkpoint-N` there is its progress,
with a manifest that states its settings. When it is done, `OUTPUT` appears by a rename: a stock
Hugging Face checkpoint with `training.json` and `tensorboard/` beside the weights.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from core import files
from core.errors import InputError
from core.extend import export
from experiments.kit import processes, records
from experiments.kit.base_model import weight_hashes
from experiments.training import checkpoint, launch
from experiments.training.trainer import TENSORBOARD, Trainer

FACTS = "training.json"
_FINISHED = "finished"
_LEFT = (
    checkpoint.SAVING,
    TENSORBOARD,
    _FINISHED,
)  # what else is in the unfinished directory, beside its checkpoints


class Output:
    """The directories of one fine-tune.

    Args:
        path: the finished directory.
        settings: everything that decides the result, as JSON values, and its `identity`.
    """

    def __init__(self, path: Path, settings: dict) -> None:
        self.settings = settings
        self.path = Path(os.path.abspath(path))  # so that even "." has a name
        self.unfinished = Path(f"{self.path}.unfinished")

    @property
    def is_done(self) -> bool:
        """Whether the finished directory exists; InputError if it holds another run or something
        else."""
        if not os.path.lexists(self.path):
            return False
        if not (self.path / FACTS).is_file():
            raise InputError(
                f"{self.path} exists and holds no training run; give another --output, or remove "
                f"it."
            )
        facts = self.facts()
        if (
            facts.get("identity") != self.settings["identity"]
        ):  # the wanted run may lack what the present one states
            differing = records.difference(facts, self.settings) or "another identity"
            raise InputError(
                f"{self.path} is a run with {differing}; give another --output, or remove it."
            )
        return True

    def facts(self) -> dict:
        """The finished run's `training.json`."""
        return files.read_json(self.path / FACTS, f"remove {self.path} to train it again")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside the context, no other command trains to this output. Every process calls this.

        Raises:
            InputError: another command does.
        """
        with contextlib.ExitStack() as lock:
            launch.once(lambda: lock.enter_context(files.lock(self.path)), processes.rank()[0] == 0)
            yield

    def begin(self, data_sha256: str) -> dict:
        """Check that the run can resume from its directory's checkpoint, or clear the directory if
        there is none.

        Every process calls this. DeepSpeed's checkpoints are divided among as many processes as
        train together.

        Args:
            data_sha256: the SHA-256 of all tokens.

        Returns:
            the contents of the manifests of this run's checkpoints.

        Raises:
            InputError: the checkpoint is incomplete, or belongs to another run, number of
                processes, data or code.
        """
        rank, count = processes.rank()
        facts = checkpoint.facts(
            self.settings | {"processes": count, "data_sha256": data_sha256},
            *records.code_files("experiments.finetune"),
        )

        def prepare() -> None:
            if checkpoint.whole(self.unfinished, facts) is None:
                self.clear()  # leftovers without a checkpoint, so nothing is lost
            files.remove(self.unfinished / checkpoint.SAVING)

        launch.once(prepare, rank == 0)
        return facts

    def clear(self) -> None:
        """Remove the run's files from its unfinished directory, and the directory if it is then
        empty.

        Where another run's checkpoint lies in it, everything stays.
        """
        saved = checkpoint.checkpoints(self.unfinished)
        if all(
            checkpoint.run_of(path).get("identity") == self.settings["identity"] for path in saved
        ):
            for path in (*saved, *(self.unfinished / name for name in _LEFT)):
                files.remove(path)
        with contextlib.suppress(OSError):
            self.unfinished.rmdir()

    def finish(self, trainer: Trainer, tokenizer, facts: dict) -> None:
        """Write the finished directory. Every process calls this.

        Args:
            trainer: the trainer, at the end of training.
            facts: more facts for `training.json`.
        """
        model = trainer.accelerator.unwrap_model(trainer.model)
        gathered: contextlib.AbstractContextManager = contextlib.nullcontext()
        if trainer.is_deepspeed_enabled:  # gather the weights that ZeRO-3 has divided
            import deepspeed

            gathered = deepspeed.zero.GatheredParameters(list(model.parameters()))
        with gathered:
            if trainer.is_world_process_zero():
                self._write(trainer, model, tokenizer, facts)
        trainer.accelerator.wait_for_everyone()

    def _write(self, trainer: Trainer, model, tokenizer, facts: dict) -> None:
        finished = self.unfinished / _FINISHED
        files.remove(finished)
        export(model, finished, tokenizer)
        history = [entry for entry in trainer.state.log_history if "loss" in entry]
        seconds = [round(entry["seconds"], 4) for entry in history]
        facts = (
            self.settings
            | facts
            | {
                "sha256": weight_hashes(finished),
                "losses": [entry["loss"] for entry in history],
                "seconds": round(sum(seconds), 1),
                "seconds_per_step": seconds,
                "environment": records.environment(),
            }
        )
        files.write_json(finished / FACTS, facts)
        shutil.copytree(self.unfinished / TENSORBOARD, finished / TENSORBOARD)
        finished.rename(self.path)
        self.clear()
