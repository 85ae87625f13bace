"""A time within which commands run: which may still begin, and which need not, as an earlier call ended them.

What a command took, and the records that it wrote, are noted in a file beside the records' folder. A command that ended
is done as long as its records are there. What one takes is estimated by the longest of its experiment that was noted,
else by the committed records of the model that were measured on a GPU, or on a CPU, as here.
"""

from __future__ import annotations

import functools
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core import files
from experiments.kit import records
from experiments.kit.pool import Chain, Command

LOADING = 20.0  # seconds for libraries and weights, which a record does not count
NOTES = "done.json"


class Deadline:
    """
    Args:
        seconds: from now on.
        output: the folder that all records and checkpoints of these commands are in.
        committed: the committed records of the model, to estimate by; None to know nothing at first.
        on_gpu: whether the commands run on a GPU.
    """

    def __init__(self, seconds: float, output: Path, committed: Path | None, on_gpu: bool) -> None:
        self._end, self._output, self._committed, self._on_gpu = time.monotonic() + seconds, output, committed, on_gpu
        self._file = output / NOTES
        self._notes = files.read_json(self._file, "remove it") if self._file.is_file() else {}

    @property
    def left(self) -> float:
        """Seconds until the end; 0 after it."""
        return max(self._end - time.monotonic(), 0.0)

    def to_do(self, chain: Chain) -> Chain:
        """The chain without the commands that are done; nothing of it is trained for what is done."""
        rest = [command for command in chain.commands[chain.trains :] if not self._is_done(command)]
        training = chain.commands[: chain.trains] if rest else []
        return replace(chain, commands=training + rest, trains=len(training))

    def allows(self, commands: Sequence[Command]) -> bool:
        """Whether these commands, one after the other, are expected to end in time."""
        return sum(map(self.expected, commands)) < self.left

    def expected(self, command: Command) -> float:
        """The seconds that a command is expected to take; LOADING if nothing is known of its experiment."""
        noted = [note["seconds"] for key, note in self._notes.items() if key.split()[0] == command[0]]
        if noted:
            return max(noted)
        known = _recorded(self._committed, command[0].split(".")[-1], self._on_gpu) if self._committed else 0.0
        return known + LOADING

    def note(self, command: Command, seconds: float, said: Sequence[str]) -> None:
        """Note that a command ended well, by what it printed last: the path of its record."""
        paths = [Path(line.removeprefix("done already: ")) for line in said if line.endswith(".json")]
        written = [os.path.relpath(path, self._output) for path in paths]
        before = self._notes.get(self._key(command), {"seconds": 0.0})["seconds"]
        self._notes[self._key(command)] = {"seconds": round(max(seconds, before), 1), "records": written}
        files.write_json(self._file, self._notes)

    def _is_done(self, command: Command) -> bool:
        written = self._notes.get(self._key(command), {}).get("records")
        return bool(written) and all((self._output / path).is_file() for path in written)

    def _key(self, command: Command) -> str:
        return shlex.join(command).replace(str(self._output), "OUTPUT")  # which may be elsewhere next time


@functools.cache
def _recorded(folder: Path, experiment: str, on_gpu: bool) -> float:
    """The most seconds that a record of an experiment states, of those on a GPU or of those on a CPU; 0 without any."""
    measured = map(records.read, folder.rglob(f"{experiment}/*.json"))
    here = [record for record in measured if ("gpus" in record["environment"]) == on_gpu]
    return max((record["seconds"] for record in here if "seconds" in record), default=0.0)
