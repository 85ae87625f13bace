"""Training losses of fine-tunes on the same sequences, beside YaRN's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analysis.results import Entries, Results, read
from analysis.scores import stacked
from analysis.settings import Setting
from core import rope
from core.errors import InputError
from eval.intervals import standard_error

QUARTERS = 4


class Gap(NamedTuple):
    """A fine-tune's losses minus YaRN's.

    Attributes:
        setting: what was fine-tuned.
        seed: of the order of the sequences.
        batch: sequences a step.
        by_step: nats per token, float64 [steps].
    """

    setting: Setting
    seed: int
    batch: int
    by_step: np.ndarray


def gaps(results: Results) -> list[Gap]:
    """Of each fine-tune on sequences longer than L that YaRN was fine-tuned on, too.

    Raises:
        InputError: a record lacks a step, or two that should have read the same sequences in the
            same order did not.
    """
    folder = results.folder / results.model.name
    alike: dict[tuple, list[Entries]] = {}
    for run in map(read, sorted(folder.rglob("finetune/*.json"))):
        if run["length"] > results.model.context_length and "rate" not in run:
            key = run["factor"], run["length"], run["batch"], run["steps"], run["seed"]
            alike.setdefault(key, []).append(run)
    found = []
    for runs in alike.values():
        yarn = [run for run in runs if run["method"] == rope.BASELINE and not run["options"]]
        if yarn:
            _check(runs)
            others = (run for run in runs if run is not yarn[0])
            found += [_gap(run, yarn[0]) for run in others]
    return found


def _check(runs: list[Entries]) -> None:
    for run in runs:
        if len(run["losses"]) != run["steps"]:
            count = len(run["losses"])
            raise InputError(
                f"{run.file} has {count} losses of {run['steps']} steps; train it again."
            )
        if run["data_sha256"] != runs[0]["data_sha256"]:
            raise InputError(
                f"{run.file} was trained on other sequences than {runs[0].file}, or in another "
                "order; train both on one corpus."
            )


def _gap(run: dict, reference: dict) -> Gap:
    ours, others = stacked([run["losses"], reference["losses"]])
    return Gap(Setting.of(run), run["seed"], run["batch"], ours - others)


class Quarter(NamedTuple):
    """The mean gap in a quarter of the steps, and its standard error over them (nats per token)."""

    mean: float
    error: float


def quarters(by_step: np.ndarray) -> list[Quarter]:
    """The four quarters of the gap [steps], whose number four divides."""
    parts = np.split(by_step, QUARTERS)
    return [Quarter(float(part.mean()), standard_error(part)) for part in parts]


def still_closing(by_step: np.ndarray) -> bool:
    """Whether the gap fell from the third quarter to the last by more than two standard errors."""
    *_, third, last = quarters(by_step)
    return third.mean - last.mean > 2 * np.hypot(third.error, last.error)
