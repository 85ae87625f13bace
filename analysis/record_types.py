"""Reading a record: a file that is no JSON, or lacks what a table needs, is named in the error."""

from __future__ import annotations

import json
from pathlib import Path

from core.errors import InputError

REMEDY = "another version or another hand wrote it; remove it and measure again"


class Stated(dict):
    """An object in a record. Reading a missing key raises an InputError that names the file."""

    file: Path

    def __missing__(self, key: object) -> object:
        raise InputError(f"{self.file} does not say {key!r}; {REMEDY}.")


def read(file: Path, experiment: str = "") -> Stated:
    """A record; each object in it is a :class:`Stated`."""

    def stated(entries: dict) -> Stated:
        value = Stated(entries)
        value.file = file
        return value

    try:
        return json.loads(file.read_text(encoding="utf-8"), object_hook=stated)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read: {error}; {REMEDY}.") from error
