"""An append-only journal of a run, so that a run killed at any moment can resume."""

import contextlib
import json
import os
from pathlib import Path

from core import files
from core.errors import InputError
from records import identity


class Journal(contextlib.AbstractContextManager):
    """JSON values by key, kept on disk as one line each, with a hash of both and of the journal.

    The file is named after the run's identity and the code that scores it, so a changed option,
    model or program opens another journal. An incomplete last line, left by a kill, is dropped. One
    process at a time can open it.

    Raises:
        InputError: another process has it open, or a line in it was altered.
    """

    def __init__(self, file: Path) -> None:
        self.file = Path(file)
        with contextlib.ExitStack() as stack:
            stack.enter_context(files.lock(self.file))
            self.entries, whole = _read(self.file)
            if self.file.exists():
                os.truncate(self.file, whole)
            self._open = stack.pop_all()

    def __exit__(self, _, error: BaseException | None, __) -> None:
        self._open.close()
        if error and self.entries:
            error.add_note(
                f"measured and kept: {len(self.entries):,}, and the same command goes on from there"
            )

    def add(self, key: str, value: object) -> None:
        """Append an entry; it is on disk when this returns."""
        with open(self.file, "a", encoding="utf-8") as handle:
            handle.write(json.dumps([key, value, _hash(self.file, key, value)]) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        self.entries[key] = value


def read_all(path: Path) -> dict[str, object]:
    """The entries of the journals of all processes, whose names begin with that of `path`; no file
    is changed."""
    entries: dict[str, object] = {}
    for file in sorted(path.parent.glob(f"{path.name}.*.jsonl")):
        entries |= _read(file)[0]
    return entries


def _read(file: Path) -> tuple[dict[str, object], int]:
    """The entries, and the number of bytes of their complete lines; another process may be writing
    more."""
    entries: dict[str, object] = {}
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
