"""An append-only journal of a run, so that a run killed at any moment can resume."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core import files
from core.errors import InputError
from records import identity


@dataclass(frozen=True)
class Journal:
    """JSON values by key, kept on disk as one line each, with a hash of both and of the journal.

    The file is named after the run's identity and the code that scores it, so a changed option,
    model or program opens another journal.
    """

    file: Path
    entries: dict[str, object]

    def add(self, key: str, value: object) -> None:
        """Append an entry; it is on disk when this returns."""
        with open(self.file, "a", encoding="utf-8") as handle:
            handle.write(json.dumps([key, value, _hash(self.file, key, value)]) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        self.entries[key] = value


@contextlib.contextmanager
def opened(file: Path) -> Iterator[Journal]:
    """The journal in a file. An incomplete last line, left by a kill, is dropped. One process at a
    time can open it.

    Raises:
        InputError: another process has it open, or a line in it was altered.
    """
    with files.lock(file):
        entries, whole = _read(file)
        if file.exists():
            os.truncate(file, whole)
        try:
            yield Journal(file, entries)
        except BaseException as error:
            if entries:
                error.add_note(
                    f"measured and kept: {len(entries):,}, and the same command goes on from there"
                )
            raise


def read_all(path: Path) -> dict[str, object]:
    """The entries of the journals of all processes, whose names begin with that of `path`; no file
    is changed."""
    entries = {}
    for file in sorted(path.parent.glob(f"{path.name}.*.jsonl")):
        entries |= _read(file)[0]
    return entries


def _read(file: Path) -> tuple[dict[str, object], int]:
    """The entries, and the number of bytes of their complete lines; another process may be writing
    more."""
    entries = {}
    whole = 0
    for number, line in enumerate(
        file.read_bytes().splitlines(keepends=True) if file.exists() else (), 1
    ):
        if not line.endswith(b"\n"):
            break
        try:
            key, value, hashed = json.loads(line)
            if hashed != _hash(file, key, value):
                raise ValueError("another hash")
            entries[key] = value
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"line {number} of {file} is not what was written there; remove the file to score "
                f"its parts again."
            ) from error
        whole += len(line)
    return entries, whole


def _hash(file: Path, key: str, value: object) -> str:
    return identity(journal=file.name, key=key, value=value)
