"""An append-only journal of a run's parts, so that a run killed at any moment goes on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path


def path(results: Path, scale: str, experiment: str, run_identity: str) -> Path:
    """Where a run's journal belongs: beside the results, outside version control."""
    return Path(results).resolve().parent / "runs" / scale / experiment / f"{run_identity}.jsonl"


class Journal:
    """A mapping from a part's key to its JSON value, kept on disk as one line per part.

    The file is named after the run's identity, so a changed option or model opens another journal. A last line
    that a kill tore is dropped.
    """

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.parts, whole = _read(self.file)
        if self.file.exists():
            os.truncate(self.file, whole)

    def __contains__(self, key: str) -> bool:
        return key in self.parts

    def __getitem__(self, key: str) -> object:
        return self.parts[key]

    def add(self, key: str, value: object) -> None:
        """Append a part; it is on disk when this returns."""
        with open(self.file, "a") as handle:
            handle.write(json.dumps([key, value]) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        self.parts[key] = value


def read(file: Path) -> dict[str, object]:
    """The parts of a journal that another process may be writing; the file is left alone."""
    return _read(file)[0]


def _read(file: Path) -> tuple[dict[str, object], int]:
    """The parts, and how many bytes their whole lines take."""
    parts: dict[str, object] = {}
    whole = 0
    if file.exists():
        with open(file, "rb") as handle:
            for line in handle:
                if not line.endswith(b"\n"):
                    break
                key, value = json.loads(line)
                parts[key] = value
                whole += len(line)
    return parts, whole
