"""The paper's published numbers in results/paper/NAME.csv, as rows and blocks."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.scores import Score, Scores
from core import rope
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.kit.records import RESULTS

if TYPE_CHECKING:
    import pandas as pd

# A table's column of numbers, and the column that says what they measure.
_METRICS = {"score": "metric", "perplexity": "context_length", "relative_to_pi": "phase"}
_WORDS = {"model", "method", "metric", "phase", "printed_label", "context_window", "context_length"}
_COLUMNS = {
    ("longbench_e", "open_llm", "ruler"): "model method factor context_window metric score bold",
    ("perplexity",): "model printed_label method context_length perplexity bold",
    ("disturbance",): "method factor context_length disturbance_e3 bold",
    ("n_hat_longbench_e", "n_hat_open_llm"): "n_hat metric score bold",
    ("intervals_longbench_e", "intervals_open_llm"): "intervals metric score bold",
    ("time_cost",): "model method phase relative_to_pi",
}
# The geometry of the paper's models, which is all that its table of disturbances depends on.
GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)


@dataclass(frozen=True)
class Published:
    """A block of a table of the paper: its model, and scores by the row's name."""

    model: str
    rows: Mapping[str, Scores]


@functools.cache
def table(name: str) -> pd.DataFrame:
    """The numbers of one table, one per line."""
    import pandas as pd  # imported here, because it loads slowly and printing rows does not need it

    _lines(name)  # refuses a broken file
    return pd.read_csv(_file(name))


@functools.cache
def blocks(name: str) -> list[Published]:
    """The paper's rows, in a block per model; an ablation's rows are named by the option's value."""
    found: dict[str, dict[str, dict[str, Score]]] = {}
    for line in _lines(name):
        if "model" in line:
            model, row = line["model"], _name(line["method"], line.get("factor"))
            value, metric = next((key, of) for key, of in _METRICS.items() if key in line)
        else:
            model, row, value, metric = "LLaMA2-13B", next(iter(line.values())), "score", "metric"
        found.setdefault(model, {}).setdefault(row, {})[line[metric]] = Score(float(line[value]))
    return [Published(model, rows) for model, rows in found.items()]


def disturbance() -> dict[tuple[str, float], float]:
    """The paper's averaged disturbances in 10⁻³ nat, by method and factor."""
    lines = _lines("disturbance")
    return {(line["method"], float(line["factor"])): float(line["disturbance_e3"]) for line in lines}


@functools.cache
def _lines(name: str) -> list[dict[str, str]]:
    """The lines, each by column; InputError names a line that is broken."""
    file, wanted = _file(name), next(columns for names, columns in _COLUMNS.items() if name in names)
    try:
        with file.open(newline="", encoding="utf-8") as handle:
            found = list(csv.DictReader(handle))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"cannot read {file} ({error}); restore it from the repository.") from error
    for number, line in enumerate(found, 2):
        if list(line) != wanted.split() or not all(_fits(*entry) for entry in line.items()):
            raise InputError(f"line {number} of {file} is not what was published; restore it from the repository.")
    if not found:
        raise InputError(f"{file} holds no numbers; restore it from the repository.")
    return found


def _fits(column: str, value: str | None) -> bool:
    if column in _WORDS:
        return bool(value)
    try:
        return (column == "factor" and value == "") or math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _file(name: str) -> Path:
    return RESULTS / "paper" / f"{name}.csv"


def with_factor(title: str, method: str | None, factor: float | None) -> str:
    """A row's name with its s, or "s ≤" for a learned method, whose RoPE scale follows the input's length up to s."""
    if factor is None:
        return title
    learned = method in rope.METHODS and rope.METHODS[method].start is not None
    return f"{title} (s {'≤' if learned else '='} {factor:g})"


def _name(method: str, factor: str | None) -> str:
    title = rope.METHODS[method].title if method in rope.METHODS else method
    return with_factor(title[:1].upper() + title[1:], method, float(factor) if factor else None)
