"""Checkpoints to resume from: complete, of the same run and of the same code, or refused.

A checkpoint is written to a temporary folder. Its manifest is written last, with every file's size and SHA-256, the
run's settings, and the code that trains. Then the folder is renamed, so a kill leaves the previous checkpoint. A run
never resumes from a checkpoint that would not lead to the same result.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar
from unittest import mock

import transformers

from core import files
from core.errors import InputError
from experiments.kit import records

MANIFEST = "manifest.json"
SAVING = ".saving"
_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "deepspeed", "numpy")


class SavesWhole(transformers.Trainer):
    """A Trainer whose checkpoints appear with their manifest or not at all.

    Attributes:
        kept: how many checkpoints are kept.
        facts: the contents of the manifests, from :func:`facts`.
    """

    kept = 1
    facts: ClassVar[dict] = {}

    def _save_checkpoint(self, model, trial):
        folder = Path(self.args.output_dir)
        with mock.patch.object(self, "_get_output_dir", lambda trial: str(folder / SAVING)):
            super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()
        if self.is_world_process_zero():
            name = f"checkpoint-{self.state.global_step}"
            seal(folder / SAVING / name, self.facts)
            (folder / SAVING / name).rename(folder / name)
            for old in checkpoints(folder)[: -self.kept]:
                shutil.rmtree(old)
            shutil.rmtree(folder / SAVING)
        self.accelerator.wait_for_everyone()


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a run's directory, oldest first."""
    return sorted((path for path in folder.glob("checkpoint-*") if re.fullmatch(r"\D+\d+", path.name)), key=step)


def last(folder: Path) -> Path | None:
    """The newest checkpoint in a run's directory, or None."""
    return next(reversed(checkpoints(folder)), None)


def step(checkpoint: Path) -> int:
    """The number of steps that a checkpoint holds."""
    return int(checkpoint.name.rsplit("-", 1)[1])


def facts(run: dict, *patterns: str) -> dict:
    """What a manifest says about the run and about the code that trains.

    Args:
        run: everything that decides the result, as JSON values.
        patterns: of the files in this repository whose code trains.
    """
    code = {}
    for pattern in patterns:
        hashes = _hashes(records.ROOT, records.ROOT.glob(pattern))
        if not hashes:
            raise ValueError(f"no file matches {pattern}, so that it would hash nothing")
        code |= hashes
    return {"run": run, "packages": records.versions(*_PACKAGES), "code": code, "commit": records.commit()}


def seal(folder: Path, facts: dict) -> None:
    """Write the manifest of a directory's present files."""
    hashes = _hashes(folder, folder.rglob("*"))
    listed = {name: {"size": (folder / name).stat().st_size, "sha256": sha256} for name, sha256 in hashes.items()}
    files.write_json(folder / MANIFEST, {"files": listed, **facts})


def whole(folder: Path, facts: dict | None = None) -> Path | None:
    """The newest checkpoint in a run's directory, checked to be complete; None without any.

    Args:
        facts: those of the run and code that it must be of; None for any.

    Raises:
        InputError: the checkpoint is incomplete, or of another run or code.
    """
    checkpoint = last(folder)
    if checkpoint is None:
        return None
    anew = f"remove {folder} to start again"
    if not (checkpoint / MANIFEST).is_file():
        raise InputError(f"{checkpoint} has no {MANIFEST}, so it may be incomplete; restore it, or {anew}.")
    there = files.read_json(checkpoint / MANIFEST, f"restore it, or {anew}")
    wanted = there if facts is None else facts
    try:
        if differing := records.difference(there["run"], wanted["run"]):
            raise InputError(f"{folder} holds a run with {differing}; start this one elsewhere, or {anew}.")
        for what in ("packages", "code"):
            before, now = there[what], wanted[what]
            for name in sorted(before.keys() | now.keys()):
                if before.get(name) != now.get(name):
                    mend = f"check out commit {there['commit']}" if what == "code" else f"install {before.get(name)}"
                    raise InputError(f"{checkpoint} was trained with another version of {name}; {mend}, or {anew}.")
        wrong = flaw(checkpoint, there)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{checkpoint / MANIFEST} is not a manifest; restore it, or {anew}.") from error
    if wrong:
        raise InputError(f"{checkpoint / wrong}; restore it, or {anew}.")
    return checkpoint


def flaw(folder: Path, manifest: dict) -> str | None:
    """The first file that is missing or was altered, with the reason; None if there is none."""
    listed = manifest["files"]
    for name, file in listed.items():
        if not (folder / name).is_file():
            return f"{name} is missing"
        if (folder / name).stat().st_size != file["size"]:
            return f"{name} has another size than when it was written"
    for name, sha256 in _hashes(folder, (folder / name for name in listed)).items():
        if sha256 != listed[name]["sha256"]:
            return f"{name} was altered after it was written"
    return None


def _hashes(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of those of the paths that are files, by their paths in the folder, in order.

    The files may have tens of gigabytes, so threads hash them in parallel.
    """
    paths = sorted(path for path in paths if path.is_file())
    with ThreadPoolExecutor() as pool:
        return dict(zip([str(path.relative_to(folder)) for path in paths], pool.map(files.sha256, paths), strict=True))
