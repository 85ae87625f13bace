"""The paper's published numbers: results/paper/NAME.csv, as rows and blocks."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.scores import Score, Scores
from core import rope
from core.geometry import RopeGeometry
from experiments.lab.records import RESULTS

if TYPE_CHECKING:
    import pandas as pd

# The column of numbers, and that of what they are of.
_METRICS = {"score": "metric", "perplexity": "context_length", "relative_to_pi": "phase"}
# Of the paper's models; all that its table of disturbances depends on.
GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)


@dataclass(frozen=True)
class Published:
    """A block of a table of the paper: its model, and scores by the row's name."""

    model: str
    rows: dict[str, Scores]


@functools.cache
def table(name: str) -> pd.DataFrame:
    """The numbers of one table, one a line."""
    import pandas as pd  # takes long to load, and printing rows needs none of it

    return pd.read_csv(_file(name))


@functools.cache
def blocks(name: str) -> list[Published]:
    """The paper's rows, a block for each of its models; of an ablation, named by the option's value."""
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
    """In 10⁻³ nat, by method and factor."""
    lines = _lines("disturbance")
    return {(line["method"], float(line["factor"])): float(line["disturbance_e3"]) for line in lines}


def _lines(name: str) -> list[dict[str, str]]:
    with _file(name).open(newline="") as file:
        return list(csv.DictReader(file))


def _file(name: str) -> Path:
    return RESULTS / "paper" / f"{name}.csv"


def with_factor(title: str, method: str | None, factor: float | None) -> str:
    """A row's name with its s; a learned method takes its scale from the input's length, up to s."""
    if factor is None:
        return title
    learned = method in rope.METHODS and rope.METHODS[method].start is not None
    return f"{title} (s {'≤' if learned else '='} {factor:g})"


def _name(method: str, factor: str | None) -> str:
    title = rope.METHODS[method].title if method in rope.METHODS else method
    return with_factor(title[:1].upper() + title[1:], method, float(factor) if factor else None)
