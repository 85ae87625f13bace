"""Training losses of fine-tunes on the same sequences, beside YaRN's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.comparison import TRAINED_ALIKE
from analysis.results import Record, Results, read
from analysis.scores import stacked
from core import rope
from core.errors import InputError
from core.setting import Setting
from eval.intervals import standard_error

QUARTERS = 4
# Of fine-tunes that read as much and were trained alike; with one seed, in the same order.
_ALIKE = ("factor", "length", "batch", "steps", "per_book", *TRAINED_ALIKE)


class Gap(NamedTuple):
    """A fine-tune's losses minus YaRN's.

    Attributes:
        setting: what was fine-tuned.
        seed: of the order of the sequences.
        batch: sequences a step.
        per_book: the most sequences that a book gave; None where it gave all.
        length: tokens a sequence.
        alike: names the fine-tunes that differ in their seeds and methods alone.
        by_step: nats per token, float64 [steps].
    """

    setting: Setting
    seed: int
    batch: int
    per_book: int | None
    length: int
    alike: str
    by_step: np.ndarray


def gaps(results: Results) -> list[Gap]:
    """Of each fine-tune on sequences longer than L that YaRN was fine-tuned on, too.

    Raises:
        InputError: two that should have read the same sequences in the same order did not.
    """
    folder = results.folder / results.name
    alike: dict[tuple[str, int], list[Record]] = {}
    for record in map(read, sorted(folder.rglob("finetune/*.json"))):
        if record.run["length"] > results.context_length:
            kind = json.dumps([record.run.get(name) for name in _ALIKE])
            alike.setdefault((kind, record.run["seed"]), []).append(record)
    found = []
    for (kind, _), runs in alike.items():
        yarn = next(filter(_is_yarn, runs), None)
        if yarn:
            _check(runs)
            found += [_gap(record, yarn, kind) for record in runs if record is not yarn]
    return found


def _is_yarn(record: Record) -> bool:
    return record.run["method"] == rope.BASELINE and not record.run["options"]


def _check(runs: list[Record]) -> None:
    for record in runs:
        if record.data_facts != runs[0].data_facts:
            raise InputError(
                f"{record.path} was trained on other sequences than {runs[0].path}, or in another "
                "order; train both on one corpus."
            )


def _gap(record: Record, reference: Record, kind: str) -> Gap:
    ours, others = stacked([record.scores["losses"], reference.scores["losses"]])
    run = record.run
    read = run["batch"], run.get("per_book"), run["length"]
    return Gap(Setting.of(run), run["seed"], *read, kind, ours - others)


class Quarter(NamedTuple):
    """The mean gap in a quarter of the steps, and its standard error over them (nats per token)."""

    mean: float
    error: float


def quarters(by_step: np.ndarray) -> list[Quarter]:
    """The four quarters of the gap [steps], of two steps or more each; where four does not divide
    their number, the first are a step longer."""
    parts = np.array_split(by_step, QUARTERS)
    return [Quarter(float(part.mean()), standard_error(part)) for part in parts]


def slope(by_step: np.ndarray, order: Sequence[int], first: int) -> Quarter:
    """How much the gap changes in a quarter of the steps, from step `first` on (counted from 0),
    with its standard error: by least squares, with a level of its own for each book.

    Args:
        order: the book that each step read.
    """
    steps = np.arange(first, len(by_step), dtype=np.float64)
    gap = np.array(by_step[first:])
    books = np.array(order[first:])
    for book in np.unique(books):
        gap[books == book] -= gap[books == book].mean()
        steps[books == book] -= steps[books == book].mean()
    spread = (steps**2).sum()
    per_step = (steps * gap).sum() / spread
    freedom = len(gap) - len(np.unique(books)) - 1
    error = np.sqrt(((gap - per_step * steps) ** 2).sum() / freedom / spread)
    steps_of_quarter = len(by_step) / QUARTERS
    return Quarter(float(steps_of_quarter * per_step), float(steps_of_quarter * error))


def still_closing(by_step: np.ndarray) -> bool:
    """Whether the gap fell from the third quarter to the last by more than two standard errors."""
    *_, third, last = quarters(by_step)
    return third.mean - last.mean > 2 * np.hypot(third.error, last.error)
