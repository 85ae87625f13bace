"""A program in another virtual environment that answers requests over pipes, one line of JSON each."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from core.errors import InputError

AHEAD = 512  # requests that the worker may hold: enough for any batch, and little memory even with long prompts
FAREWELL = 30  # seconds that a worker has to end before it is killed


class Worker(contextlib.AbstractContextManager):
    """A worker that runs until it is closed, or until this process ends in any way.

    Its first line says that it is ready. It then reads requests from its standard input and writes an answer to each,
    in any order, to its standard output. Its standard error goes to `log`. It ends when its input ends. It leads a
    process group, so that the processes it started end with it.

    Raises:
        InputError: it ends, or answers {"failed": reason}, before everything is answered; the message gives the reason
            and the log.
    """

    def __init__(self, name: str, command: list[object], log: Path, environment: dict[str, str]) -> None:
        self.name, self.log = name, log
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "wb") as said:
            self.process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdin and self.process.stdout  # both are pipes
        self._asked, self._said = self.process.stdin, self.process.stdout
        self._end = threading.Thread(target=self._end_all, daemon=True)
        self._end.start()
        try:
            self.ready = self._read()
        except BaseException:
            self.close()
            raise

    def ask(self, requests: Iterable[dict]) -> Iterator[dict]:
        """The answers, in the order they arrive."""
        pending, waiting = iter(requests), 0
        for request in islice(pending, AHEAD):
            self._write(request)
            waiting += 1
        while waiting:
            answer = self._read()
            waiting -= 1
            for request in islice(pending, 1):
                self._write(request)
                waiting += 1
            yield answer

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """End the worker and the processes that it started."""
        with contextlib.suppress(OSError):
            self._asked.close()
        try:
            self.process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._end.join()
        self._said.close()

    def _end_all(self) -> None:
        """When the worker has ended, kill the processes that it started: they may hold open the pipe that we read."""
        self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):  # none left; macOS raises PermissionError
            os.killpg(self.process.pid, signal.SIGKILL)

    def _write(self, request: dict) -> None:
        try:
            self._asked.write(json.dumps(request) + "\n")
            self._asked.flush()
        except OSError as error:
            raise self._ended() from error

    def _read(self) -> dict:
        line = self._said.readline()
        if not line.endswith("\n"):
            raise self._ended()
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise self._ended(f"it says {line.strip()!r}") from error
        if "failed" in answer:
            raise self._ended(answer["failed"])
        return answer

    def _ended(self, reason: str = "") -> InputError:
        self.close()
        why = cause(self.log) or reason or "it ended"
        return InputError(f"{self.name} failed: {why}; see its whole output in {self.log}.")


def cause(log: Path) -> str:
    """The first error in a log, without the logger's prefix; the last line if there is no error."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    named = (re.search(r"\b(\w+\.)*\w*(Error|Exception): .+", line) for line in lines)
    return next((found[0] for found in named if found), lines[-1] if lines else "").strip().removesuffix(".")
