"""Checkpoints to resume from: whole, of the same run and of the same code, or refused.

A checkpoint is written to a temporary folder. Its manifest is written last, with every file's
SHA-256, the run's settings and the code that trains. Then the folder is renamed, so a kill leaves
the previous checkpoint. transformers would go on from one without an optimizer's state, or with a
flipped bit, to other losses.
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
    """A Trainer whose checkpoints appear with their manifest or not at all; the last is kept.

    Attributes:
        facts: the contents of the manifests, from :func:`facts`.
    """

    facts: ClassVar[dict] = {}

    def _save_checkpoint(self, model, trial):
        folder = Path(self.args.output_dir)
        with mock.patch.object(self, "_get_output_dir", lambda trial: str(folder / SAVING)):
            super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()
        if self.is_world_process_zero():
            saved = folder / SAVING / f"checkpoint-{self.state.global_step}"
            write_manifest(saved, self.facts)
            saved.rename(folder / saved.name)
            for old in checkpoints(folder)[:-1]:
                shutil.rmtree(old)
            shutil.rmtree(folder / SAVING)
        self.accelerator.wait_for_everyone()


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a run's directory, oldest first."""
    return sorted(
        (path for path in folder.glob("checkpoint-*") if re.fullmatch(r"\D+\d+", path.name)),
        key=step,
    )


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
    code = _hashes(
        records.ROOT, (file for pattern in patterns for file in records.ROOT.glob(pattern))
    )
    return {
        "run": run,
        "packages": records.versions(*_PACKAGES),
        "code": code,
        "commit": records.commit(),
    }


def write_manifest(checkpoint: Path, facts: dict) -> None:
    """Write the manifest of a checkpoint's present files."""
    files.write_json(
        checkpoint / MANIFEST, {"files": _hashes(checkpoint, checkpoint.rglob("*")), **facts}
    )


def run_of(checkpoint: Path) -> dict:
    """The settings of a checkpoint's run; empty if it has no manifest."""
    file = checkpoint / MANIFEST
    return files.read_json(file, "restore it").get("run", {}) if file.is_file() else {}


def whole(folder: Path, facts: dict) -> Path | None:
    """The newest checkpoint in a run's directory, checked to be complete and of this run and code;
    None without any.

    Raises:
        InputError: the checkpoint is incomplete, or of another run or code.
    """
    checkpoint = last(folder)
    anew = f"remove {folder} to start again"
    if checkpoint is None:
        return None
    manifest = files.read_json(
        checkpoint / MANIFEST, f"it may be incomplete; restore it, or {anew}"
    )
    if differing := records.difference(manifest.get("run", {}), facts["run"]):
        raise InputError(
            f"{folder} holds a run with {differing}; start this one elsewhere, or {anew}."
        )
    for what in ("packages", "code"):
        if differing := [
            name for name, value in facts[what].items() if manifest[what].get(name) != value
        ]:
            name = differing[0]
            mend = (
                f"check out commit {manifest['commit']}"
                if what == "code"
                else f"install {manifest[what].get(name)}"
            )
            raise InputError(
                f"{checkpoint} was trained with another version of {name}; {mend}, or {anew}."
            )
    present = _hashes(checkpoint, checkpoint.rglob("*"))
    for name, sha256 in manifest["files"].items():
        if present.get(name) != sha256:
            raise InputError(
                f"{checkpoint / name} is missing or not what was saved; restore it, or {anew}."
            )
    return checkpoint


def _hashes(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of those of the paths that are files, but for a manifest, by their paths in the
    folder.

    The files may have tens of gigabytes, so threads hash them in parallel.
    """
    paths = sorted(path for path in paths if path.is_file() and path.name != MANIFEST)
    with ThreadPoolExecutor() as pool:
        return dict(
            zip(
                [str(path.relative_to(folder)) for path in paths],
                pool.map(files.sha256, paths),
                strict=True,
            )
        )
