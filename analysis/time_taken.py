"""The time that the records took to measure, as they state it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import record_types
from analysis.results import Results, models
from core.errors import InputError
from experiments.kit.records import RESULTS


def took(results: Results, *experiments: str) -> str:
    """How long all records of some experiments took, in words, on CPUs and on GPUs apart.

    Copies for settings of the same pairs count as 0.
    """
    spent = {"": 0.0, " on GPUs": 0.0}
    for run in (run for name in experiments for run in results.records(name)):
        spent[" on GPUs" if _gpus(run) else ""] += _spent(run)
    return " and ".join(words(time) + where for where, time in spent.items() if time) or words(0)


@dataclass(frozen=True)
class Compute:
    """The time that some records took together.

    Attributes:
        records: the number of records.
        seconds: wall-clock time from start to end of each.
        cpu_seconds: for those that ran on a CPU, seconds times the machine's processors, which is an upper limit.
        gpu_seconds: for those that ran on GPUs, seconds times the GPUs that shared the run.
    """

    records: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    gpu_seconds: float = 0.0

    def __add__(self, other: Compute) -> Compute:
        return Compute(
            self.records + other.records,
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            self.gpu_seconds + other.gpu_seconds,
        )


def compute(folder: Path = RESULTS) -> dict[str, Compute]:
    """The time of all records under `folder`, by model, including repeated runs in subfolders."""
    return {name: _sum(Path(folder) / name) for name in models(folder)}


def commands(file: Path = RESULTS / "commands.csv") -> dict[str, str]:
    """How long the main commands took, in words, by command: measured by hand, on the machine that the file names.

    Raises:
        InputError: the file does not give each command a number of seconds above 0.
    """
    try:
        rows = pd.read_csv(file)
        seconds_of = dict(zip(rows["command"], map(float, rows["seconds"])))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"cannot read {file} ({error}); give it the columns command and seconds.") from error
    for command, seconds in seconds_of.items():
        if not 0 < seconds < math.inf:
            raise InputError(f"{file} gives {command!r} {seconds:g} seconds; give a number above 0.")
    return {command: words(seconds) for command, seconds in seconds_of.items()}


def words(duration: float) -> str:
    """A duration in seconds as text: 40 s, 12 min, 3.4 h; a dash if nothing was measured."""
    if duration < 1:
        return "under 1 s" if duration else "–"
    if duration < 90:
        return f"{duration:.0f} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"


def _sum(model: Path) -> Compute:
    runs = (record_types.read(file, file.parent.name) for file in sorted(model.glob("*/**/*.json")))
    return sum(map(_of, runs), Compute())


def _of(run: dict) -> Compute:
    spent = _spent(run)
    processors = re.match(r"(\d+) × ", run.get("environment", {}).get("device", ""))  # a GPU's device is only its name
    on_cpu = int(processors[1]) * spent if processors else 0.0
    return Compute(1, spent, on_cpu, spent * _gpus(run))


def _gpus(run: dict) -> int:
    return run.get("environment", {}).get("gpus", 0)


def _spent(run: dict) -> float:
    return 0.0 if "same_selection_as" in run else float(run.get("seconds", 0.0))
