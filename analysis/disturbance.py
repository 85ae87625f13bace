"""The disturbance of each setting, from the records of experiments.disturbance or computed."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, replace

import numpy as np

from analysis import published
from analysis.results import Results
from analysis.settings import Setting
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution
from core.errors import InputError
from core.geometry import RopeGeometry

Way = tuple[str, str]  # how the disturbance is counted: a precision and a convention
FLOAT32, FLOAT64, EQUATION = ("float32", "released"), ("float64", "released"), ("float64", "equation")
WAYS: tuple[Way, ...] = (FLOAT32, FLOAT64, EQUATION)


def by_factor(results: Results) -> dict[float, list[dict]]:
    """The records of registered methods by factor, in the order of the registry.

    There may be others, such as the record of a method that was dropped since.

    Raises:
        InputError: a record is of another geometry than the model's, or of another number of intervals than the rest.
    """
    factors: dict[float, list[dict]] = {}
    records = results.records("disturbance")
    for record in sorted(records, key=lambda record: Setting.of(record).order):
        first = {"geometry": asdict(results.model.geometry), "intervals": records[0].get("intervals")}
        if any(record.get(name, value) != value for name, value in first.items()):
            raise InputError(
                f"disturbance/{record['file']}.json of {results.model.name} is of another geometry or number of "
                "intervals than the rest; remove it and measure it again."
            )
        if record["method"] in rope.METHODS:
            factors.setdefault(float(record["factor"]), []).append(record)
    return dict(sorted(factors.items()))


def counted(record: dict, way: Way) -> dict | None:
    """What a record holds of one way of counting; None if it does not hold it."""
    return next((row for row in record["scores"] if (row["precision"], row["convention"]) == way), None)


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
        name: the name in other tables; "the paper's n̂" stands for what differs between factors.
        chosen: whether the method chooses by the disturbance what to do with a pair.
        moved: the disturbance by factor and way of counting.
        published: the paper's numbers by factor, in 10⁻³ nat.
    """

    name: str
    chosen: bool
    moved: dict[float, dict[Way, Moved]]
    published: dict[float, float]


def rows(results: Results) -> list[Disturbed]:
    """All settings of registered methods, in the order of the registry.

    Raises:
        NotMeasured: there is no record.
    """
    results.require("disturbance")
    numbers = published.disturbance() if comparable(results) else {}
    by_name: dict[str, Disturbed] = {}
    for factor, records in by_factor(results).items():
        for record in records:
            name, method = _name(results, record), record["method"]
            row = by_name.setdefault(name, Disturbed(name, rope.METHODS[method].by_disturbance, {}, {}))
            row.moved[factor] = {
                (each["precision"], each["convention"]): Moved(1e3 * each["average"], each["interpolated_dimensions"])
                for each in record["scores"]
            }
            if not record["options"] and (method, factor) in numbers:
                row.published[factor] = numbers[method, factor]
    return list(by_name.values())


def comparable(results: Results) -> bool:
    """Whether the paper's numbers, which depend only on the geometry, can be compared with the model's."""
    return results.model.plain == published.GEOMETRY


def deviations(settings: list[Disturbed], way: Way) -> list[float]:
    """How far the disturbances that the paper prints are from the recomputed ones, each as a share of its own."""
    return [
        abs(row.moved[factor][way].average / value - 1) for row in settings for factor, value in row.published.items()
    ]


def _name(results: Results, record: dict) -> str:
    papers = {"n_hat": results.model.n_hat.get(float(record["factor"]))}
    if record["options"] == papers:
        return f"{rope.METHODS[record['method']].title} (the paper's n̂)"
    return Setting.of(record).name


def averaged(results: Results, setting: Setting) -> float | None:
    """A setting's disturbance averaged over pairs, in nats (released convention, b = 360): recorded, else computed.

    None for a learned method, whose RoPE model follows the input, and for a method that is not registered.
    """
    # The attention factor changes no angle.
    setting = replace(setting, options=tuple(entry for entry in setting.options if entry[0] != "attention_factor"))
    for record in results.records("disturbance"):
        if Setting.of(record) == setting and (row := counted(record, FLOAT64)):
            return row["average"]
    return computed(results.model.geometry, setting)


def computed(geometry: RopeGeometry, setting: Setting) -> float | None:
    """The same of any geometry, always computed."""
    factor, scaling = setting.factor, setting.scaling(geometry)
    if scaling is None:
        return None
    interpolation, extrapolation = _strategies(geometry, factor)
    divided = np.where(scaling.interpolated, geometry.inv_freq / factor, geometry.inv_freq)
    if np.allclose(divided, scaling.inv_freq, rtol=1e-12):
        return float(np.where(scaling.interpolated, interpolation, extrapolation).mean())
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length)
    extended = angle_distribution(scaling.inv_freq, round(geometry.context_length * factor))
    return float(kl.disturbance(extended, pretrained).mean())


@functools.cache
def _strategies(geometry: RopeGeometry, factor: float) -> tuple[np.ndarray, np.ndarray]:
    return kl.strategy_disturbance(geometry.inv_freq, geometry.context_length, factor)
