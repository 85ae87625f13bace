"""The time that the records took to measure, as they state it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.results import Results, models, read
from core.errors import InputError
from experiments.kit.records import RESULTS


def took(results: Results, *experiments: str) -> str:
    """How long all records of some experiments took, in words, on CPUs and on GPUs apart.

    Copies for settings of the same pairs count as 0.
    """
    spent = {"": 0.0, " on GPUs": 0.0}
    for name in experiments:
        for run in results.records(name):
            time = _of(run)
            spent[" on GPUs" if time.gpu_seconds else ""] += time.seconds
    return " and ".join(duration_text(time) + device for device, time in spent.items() if time) or duration_text(0)


@dataclass(frozen=True)
class Compute:
    """The time that some records took together.

    Attributes:
        records: how many they are.
        seconds: wall-clock time from start to end of each.
        cpu_seconds: for those that ran on a CPU, seconds times the machine's processors, which is an upper limit.
        gpu_seconds: for those that ran on GPUs, seconds times the GPUs that shared the run.
    """

    records: int
    seconds: float
    cpu_seconds: float
    gpu_seconds: float


def compute(folder: Path = RESULTS) -> Compute:
    """The time of all records under `folder`, including repeated runs in subfolders."""
    files = [file for name in models(folder) for file in sorted((Path(folder) / name).glob("*/**/*.json"))]
    times = [_of(read(file)) for file in files]
    return Compute(
        len(times),
        sum(time.seconds for time in times),
        sum(time.cpu_seconds for time in times),
        sum(time.gpu_seconds for time in times),
    )


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
    return {command: duration_text(seconds) for command, seconds in seconds_of.items()}


def duration_text(duration: float) -> str:
    """A duration in seconds as text: 40 s, 12 min, 3.4 h; a dash if nothing was measured."""
    if duration < 1:
        return "under 1 s" if duration else "–"
    if duration < 90:
        return f"{duration:.0f} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"


def _of(run: dict) -> Compute:
    environment = run.get("environment", {})
    spent = 0.0 if "same_selection_as" in run else float(run.get("seconds", 0.0))
    processors = re.match(r"(\d+) × ", environment.get("device", ""))  # a GPU's device is only its name
    return Compute(1, spent, int(processors[1]) * spent if processors else 0.0, spent * environment.get("gpus", 0))
