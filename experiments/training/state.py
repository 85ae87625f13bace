"""A fine-tune's state on disk, and where each fact of it is stated.

While it trains, a fine-tune lives in `OUTPUT.unfinished`. `checkpoint-N` there is its progress.
When it is done, `OUTPUT` appears by a rename: a stock Hugging Face checkpoint with `training.json`
beside the weights.

- The settings of a run are stated by :func:`experiments.training.run.settings_of_run`, once. Their
  hash is the run's identity.
- A manifest holds these settings, and what else must be the same for a run to go on: the
  processes, the data, the code that trains, and every file's SHA-256, which covers the trainer's
  own state. It is written last: a checkpoint without one was killed while it was written, and is
  none. transformers would go on from one without an optimizer's state, or with a flipped bit, to
  other losses.
- `training.json` holds the settings as "run", their identity, what the run measured, and as
  "content" a hash of all but the environment and the weights, which have their own.
- Its record follows from `training.json`.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

import records
from core import files, schema
from core.errors import InputError
from core.extend import export
from core.schema import Text, having
from experiments.kit import loading, processes
from records import trained

MANIFEST = "manifest.json"
NAME = "checkpoint-"  # and the number of steps, as transformers has it
_FINISHED = "finished"  # in the unfinished directory: what becomes the finished one
_REPLACES = "replaces"  # there: a file that names the run that began with --replace
_REPLACED = "replaced"  # there: the directory that was finished before, while the new one is moved
_PACKAGES = (
    *("torch", "transformers", "tokenizers", "accelerate", "deepspeed", "numpy"),
    *("liger_kernel", "flash_attn"),  # which compute the loss and attention where they are
)

_Hashes = dict[str, Text]
_MANIFEST = having(
    {
        "run": dict[str, Any],
        "packages": _Hashes,
        "code": _Hashes,
        "commit": Text,
        "files": _Hashes,
    }
)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a run's directory, and what a kill left of one."""
    return [path for path in folder.glob(f"{NAME}*") if path.name.removeprefix(NAME).isdigit()]


def last(folder: Path) -> Path | None:
    """The newest checkpoint in a run's directory, or None."""
    whole = [path for path in checkpoints(folder) if (path / MANIFEST).exists()]
    return max(whole, key=step, default=None)


def step(checkpoint: Path) -> int:
    """The number of steps that a checkpoint holds."""
    return int(checkpoint.name.removeprefix(NAME))


def facts(run: dict, *patterns: str) -> dict:
    """What a manifest says about the run and about the code that trains.

    Args:
        run: everything that decides the result, as JSON values.
        patterns: of the files in this repository whose code trains.
    """
    return {
        "run": run,
        "packages": records.versions(*_PACKAGES),
        "code": _hashes(records.ROOT, *patterns),
        "commit": records.commit(),
    }


def write_manifest(checkpoint: Path, facts: dict) -> None:
    """Write the manifest of a checkpoint's present files."""
    files.write_json(checkpoint / MANIFEST, {"files": _hashes(checkpoint), **facts})


def remove_but(kept: Path | None, folder: Path) -> None:
    """Remove all other checkpoints from a run's directory, and the directory if nothing is left."""
    for path in checkpoints(folder):
        if path != kept:
            files.remove(path)
    with contextlib.suppress(OSError):  # what else is there stays
        folder.rmdir()


def whole(folder: Path, facts: dict) -> Path | None:
    """The newest checkpoint in a run's directory, checked to be complete and of this run and code;
    None without any.

    Raises:
        InputError: the checkpoint is incomplete, or of another run or code.
    """
    checkpoint = last(folder)
    if checkpoint is None:
        return None
    anew = f"remove {folder} to start again"
    remedy = f"it may be incomplete; restore it, or {anew}"
    manifest = files.read_json(checkpoint / MANIFEST, remedy)
    schema.check(manifest, _MANIFEST, str(checkpoint / MANIFEST), remedy)
    wanted = {name: facts[name] for name in ("run", "packages", "code")}
    wanted["files"] = _hashes(checkpoint)
    if differing := records.difference(manifest, wanted):
        raise InputError(
            f"{checkpoint} does not belong here or was changed ({differing}); give another "
            f"--output, restore it, go on with the code of commit {manifest['commit']}, or {anew}."
        )
    return checkpoint


def _hashes(folder: Path, *patterns: str) -> dict[str, str]:
    """The SHA-256 of the files in a folder but for a manifest, by their paths in it.

    The files may have tens of gigabytes, so threads hash them in parallel.

    Args:
        patterns: of the files; by default all.
    """
    found = {path for pattern in patterns or ["**/*"] for path in folder.glob(pattern)}
    paths = sorted(path for path in found if path.is_file() and path.name != MANIFEST)
    names = [str(path.relative_to(folder)) for path in paths]
    with ThreadPoolExecutor() as pool:
        return dict(zip(names, pool.map(files.sha256, paths), strict=True))


class Output:
    """The directories of one fine-tune.

    Args:
        path: the finished directory.
        settings: everything that decides the result, as JSON values.
        replace: train again, whatever run there is.
    """

    def __init__(self, path: Path, settings: dict, replace: bool = False) -> None:
        self.settings = settings
        self._replace = replace
        self.path = Path(os.path.abspath(path))  # so that even "." has a name
        self.unfinished = Path(f"{self.path}.unfinished")

    @property
    def is_done(self) -> bool:
        """Whether the finished directory exists, and is not to be replaced; InputError if it holds
        another run or something else."""
        if not os.path.lexists(self.path):
            return False
        facts = trained.in_folder(self.path)
        if facts is None:
            raise InputError(
                f"{self.path} exists and holds no training run; give another --output, or remove "
                f"it."
            )
        if self._replace:
            return False
        if facts["identity"] != records.identity(**self.settings):
            # the wanted run may lack what the present one states
            differing = records.difference(facts["run"], self.settings) or "another identity"
            raise InputError(
                f"{self.path} is a run with {differing}; give another --output, or remove it."
            )
        return True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside the context, no other command trains to this output. Every process calls this.

        Raises:
            InputError: another command does.
        """
        with contextlib.ExitStack() as lock:
            with processes.one_of_all(processes.is_first()) as here:
                if here:
                    lock.enter_context(files.lock(self.path))
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
        stated = facts(
            self.settings | {"processes": processes.count(), "data_sha256": data_sha256},
            *records.CODE,
            "experiments/finetune.py",
        )

        with processes.one_of_all(processes.is_first()) as here:
            if here:
                if self._replace:
                    self._begin_anew(stated)
                # what a kill left of a checkpoint goes
                remove_but(whole(self.unfinished, stated), self.unfinished)
        return stated

    def _begin_anew(self, stated: dict) -> None:
        """Clear the unfinished directory, unless the same run began there with --replace."""
        marker = self.unfinished / _REPLACES
        facts_of_run = {name: stated[name] for name in ("run", "packages", "code")}
        begun = records.identity(**facts_of_run).encode()
        if not marker.is_file() or marker.read_bytes() != begun:
            files.remove(self.unfinished)
            self.unfinished.mkdir(parents=True)
            marker.write_bytes(begun)

    def finish(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        logged: Sequence[dict],
        facts: dict,
    ) -> None:
        """Write the finished directory. One process calls this.

        Args:
            model: with its whole weights.
            logged: what the Trainer logged of each step.
            facts: more facts for `training.json`.
        """
        finished = self.unfinished / _FINISHED
        files.remove(finished)
        export(model, finished, tokenizer)
        history = [entry for entry in logged if "loss" in entry]
        stated = {
            "run": self.settings,
            "identity": records.identity(**self.settings),
            **facts,
            "sha256": loading.weights_hashes(finished),
            "losses": [entry["loss"] for entry in history],
            "seconds_per_step": [round(entry["seconds"], 4) for entry in history],
            "environment": records.environment(processes.count()),
        }
        stated["content"] = records.content_hash(stated)
        files.write_json(finished / trained.FILE, stated)
        replaced = self.unfinished / _REPLACED
        if self._replace and os.path.lexists(self.path):
            files.remove(replaced)
            self.path.rename(replaced)
        finished.rename(self.path)
        files.remove(replaced)
        (self.unfinished / _REPLACES).unlink(missing_ok=True)
        remove_but(None, self.unfinished)
