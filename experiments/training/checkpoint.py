"""Checkpoints to resume from: complete, of the same run and of the same code, or refused.

A checkpoint is written to a temporary folder. Its manifest is written last, with every file's size and SHA-256, the
run's settings, and the code that trains. Then the folder is renamed, so a kill leaves the previous checkpoint. A run
never resumes from a checkpoint that would not lead to the same result.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import ClassVar

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
    _saving_in = None

    def _get_output_dir(self, trial):
        return self._saving_in or self.args.output_dir

    def _save_checkpoint(self, model, trial):
        folder = Path(self.args.output_dir)
        self._saving_in = str(folder / SAVING)
        try:
            super()._save_checkpoint(model, trial)
        finally:
            self._saving_in = None
        self.accelerator.wait_for_everyone()
        if self.is_world_process_zero():
            name = f"checkpoint-{self.state.global_step}"
            seal(folder / SAVING / name, self.facts)
            (folder / SAVING / name).rename(folder / name)
            for old in found(folder)[: -self.kept]:
                shutil.rmtree(old)
            shutil.rmtree(folder / SAVING)
        self.accelerator.wait_for_everyone()


def found(folder: Path) -> list[Path]:
    """The checkpoints in a run's directory, oldest first."""
    every = [path for path in folder.glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", path.name)]
    return sorted(every, key=step)


def last(folder: Path) -> Path | None:
    """The newest checkpoint in a run's directory, or None."""
    return next(reversed(found(folder)), None)


def step(checkpoint: Path) -> int:
    """The number of steps that a checkpoint holds."""
    return int(checkpoint.name.rsplit("-", 1)[1])


def facts(run: dict, *sources: str) -> dict:
    """What a manifest says about the run and about the code that trains.

    Args:
        run: everything that decides the result, as JSON values.
        sources: patterns of the files in this repository whose code trains.
    """
    matching = sorted(file for source in sources for file in records.ROOT.glob(source) if file.is_file())
    code = {str(file.relative_to(records.ROOT)): file for file in matching}
    packages = {name: metadata.version(name) for name in _PACKAGES}
    hashes = dict(zip(code, _hashes(code.values())))
    return {"run": run, "packages": packages, "code": hashes, "commit": records.commit()}


def seal(folder: Path, facts: dict) -> None:
    """Write the manifest of a directory's present files."""
    names = sorted(file for file in folder.rglob("*") if file.is_file())
    listed = {
        str(file.relative_to(folder)): {"size": file.stat().st_size, "sha256": sha256}
        for file, sha256 in zip(names, _hashes(names))
    }
    files.write_json(folder / MANIFEST, {"files": listed, **facts})


def to_go_on_from(folder: Path, facts: dict) -> Path | None:
    """The newest checkpoint in a run's directory, checked to be complete and of this run and code; None without any.

    Raises:
        InputError: the newest one is not; the message says why.
    """
    files.remove(folder / SAVING)
    return whole(folder, facts)


def whole(folder: Path, facts: dict | None = None) -> Path | None:
    """The newest checkpoint in a run's directory, checked to be complete; None without any. Nothing is changed there.

    Args:
        facts: what its manifest must say; None for anything.

    Raises:
        InputError: the checkpoint is incomplete, or its manifest says something else.
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
        if differing := difference(there["run"], wanted["run"]):
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
    for name, sha256 in zip(listed, _hashes(folder / name for name in listed)):
        if sha256 != listed[name]["sha256"]:
            return f"{name} was altered after it was written"
    return None


def difference(before: dict, now: dict) -> str | None:
    """The first difference between two runs, as "KEY OLD, not NEW"; None if there is none."""
    for key, value in now.items():
        if before.get(key) != value:
            return f"{key} {_brief(before.get(key))}, not {_brief(value)}"
    return None


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."


def _hashes(paths: Iterable[Path]) -> list[str]:
    """The SHA-256 of each file. The files may have tens of gigabytes, so threads hash them in parallel."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(files.sha256, paths))
