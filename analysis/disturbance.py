"""The averaged disturbance of each setting: the records of experiments.disturbance."""

from __future__ import annotations

from dataclasses import dataclass

from analysis import published
from analysis.results import Results
from analysis.settings import Setting
from core import rope

Way = tuple[str, str]  # how the disturbance is counted: a precision and a convention
WAYS: tuple[Way, ...] = (("float32", "released"), ("float64", "released"), ("float64", "equation"))


@dataclass(frozen=True)
class Moved:
    """A setting's disturbance, counted one way.

    Attributes:
        average: the mean over pairs, in 10⁻³ nat.
        interpolated: the number of dimensions that are divided by s.
    """

    average: float
    interpolated: int


@dataclass(frozen=True)
class Disturbed:
    """A setting's disturbance at each scaling factor.

    Attributes:
        name: the name in other tables; "n̂ by hand" stands for n̂ set by hand, which differs between factors.
        chosen: whether the method chooses by the disturbance what to do with a pair.
        moved: the disturbance by factor and way of counting.
        published: the paper's numbers by factor, in 10⁻³ nat.
    """

    name: str
    chosen: bool
    moved: dict[float, dict[Way, Moved]]
    published: dict[float, float]


def rows(results: Results) -> list[Disturbed]:
    """All settings of registered methods, in the order of the records."""
    numbers = published.disturbance() if comparable(results) else {}
    found: dict[str, Disturbed] = {}
    for run in sorted(results.require("disturbance"), key=lambda run: run["factor"]):
        factor = float(run["factor"])
        for entry in registered(run):
            name, method = _name(results, entry, factor), entry["method"]
            row = found.setdefault(name, Disturbed(name, rope.METHODS[method].by_disturbance, {}, {}))
            way = entry["precision"], entry["convention"]
            moved = Moved(1e3 * entry["average"], entry["interpolated_dimensions"])
            row.moved.setdefault(factor, {})[way] = moved
            if not entry["options"] and (method, factor) in numbers:
                row.published[factor] = numbers[method, factor]
    return list(found.values())


def registered(run: dict) -> list[dict]:
    """A record's rows of the methods that are registered; it may state others, such as one that was dropped since."""
    return [entry for entry in run["scores"] if entry["method"] in rope.METHODS]


def comparable(results: Results) -> bool:
    """Whether the paper's numbers, which depend only on the geometry, can be compared with the model's."""
    return results.model.geometry == published.GEOMETRY


def deviation(found: list[Disturbed]) -> float:
    """The largest relative deviation from the paper of the released convention in float32."""
    return max(
        (
            abs(row.moved[factor][WAYS[0]].average / value - 1)
            for row in found
            for factor, value in row.published.items()
        ),
        default=0.0,
    )


def _name(results: Results, entry: dict, factor: float) -> str:
    by_hand = {"n_hat": results.model.n_hat.get(factor)}
    if entry["options"] == by_hand:
        return f"{rope.METHODS[entry['method']].title} (n̂ by hand)"
    return Setting.of(entry | {"factor": factor}).name
