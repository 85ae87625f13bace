"""An append-only journal of a run's parts, so that a run killed at any moment can resume."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from core import files
from core.errors import InputError


class Journal(contextlib.AbstractContextManager):
    """A mapping from a part's key to its JSON value, kept on disk as one line per part.

    The file is named after the run's identity and the code that scores it, so a changed option, model or program opens
    another journal. An incomplete last line, left by a kill, is dropped. One process at a time can open it.

    Raises:
        InputError: another process has it open, or a line in it was altered.
    """

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        self._open = contextlib.ExitStack()
        self._open.enter_context(files.lock(self.file))
        try:
            self.parts, whole = _read(self.file)
            if self.file.exists():
                os.truncate(self.file, whole)
        except BaseException:
            self.close()
            raise

    def __contains__(self, key: str) -> bool:
        return key in self.parts

    def __getitem__(self, key: str) -> object:
        return self.parts[key]

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        self._open.close()

    def add(self, key: str, value: object) -> None:
        """Append a part; it is on disk when this returns."""
        with open(self.file, "a", encoding="utf-8") as handle:
            handle.write(json.dumps([key, value]) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        self.parts[key] = value


def read(file: Path) -> dict[str, object]:
    """The parts of a journal, which another process may be writing; the file is not changed."""
    return _read(file)[0]


def read_all(place: Path) -> dict[str, object]:
    """The parts of the journals of all processes, whose names begin with that of `place`."""
    parts: dict[str, object] = {}
    for file in sorted(place.parent.glob(f"{place.name}.*.jsonl")):
        parts |= read(file)
    return parts


def _read(file: Path) -> tuple[dict[str, object], int]:
    """The parts, and the number of bytes of their complete lines."""
    parts: dict[str, object] = {}
    whole = 0
    if file.exists():
        with open(file, "rb") as handle:
            for number, line in enumerate(handle, 1):
                if not line.endswith(b"\n"):
                    break
                try:
                    key, value = json.loads(line)
                    parts[key] = value
                except (ValueError, TypeError, RecursionError) as error:
                    raise InputError(
                        f"line {number} of {file} is not what was written there; remove the file to score its "
                        "parts again."
                    ) from error
                whole += len(line)
    return parts, whole
