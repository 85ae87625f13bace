"""The disturbance of each setting at L' (the paper's Table 3, Figures 7 and 8). It is mathematics:
nothing is measured.

It follows from a geometry alone and takes a few milliseconds, so it is computed where it is shown.
"""

import functools

from analysis import published
from analysis.results import Results
from core.geometry import RopeGeometry
from core.setting import Setting
from experiments.base_models.model import untrained
from experiments.disturbance import (
    EQUATION,
    FLOAT32,
    FLOAT64,
    Convention,
    Disturbance,
    of_method,
)
from experiments.disturbance import published as of_paper

CONVENTIONS = (FLOAT32, FLOAT64, EQUATION)


@functools.cache
def compute(
    geometry: RopeGeometry | None, setting: Setting, convention: Convention = FLOAT64
) -> Disturbance | None:
    """A setting's disturbance; None for a method that is not registered or is learned, and without
    a geometry."""
    # the attention factor turns no angle
    options = {name: value for name, value in setting.options if name != "attention_factor"}
    turning = Setting.make(setting.method, options, setting.factor)
    if geometry is None or turning.scaling(geometry) is None:
        return None
    return of_method(geometry, setting.method, setting.factor, options, convention)


def settings(results: Results, factor: float) -> list[Setting]:
    """Every method that needs no training, and DPRoPE at the model's n̂ where that is set by
    hand."""
    listed = untrained(results.geometry, results.n_hat, factor)
    settings_of = (Setting.make(*each, factor) for each in listed)
    return sorted(settings_of, key=lambda setting: setting.order)


def factors(results: Results) -> list[float]:
    """The scaling factors s > 1 of the model; NotMeasured if it has none."""
    if extending := [factor for factor in results.factors if factor > 1]:
        return extending
    raise results.lacks("record of a scaling factor above 1", "passkey", "--method pi --factor 2")


def recomputed(convention: Convention) -> list[tuple[Setting, float, float]]:
    """The disturbances that the paper prints, by factor: the setting, the printed one, the
    computed, in 10⁻³ nat."""
    rows = []
    for (method, factor), printed in of_paper().items():
        setting = Setting(method, (), factor)
        rows.append((setting, printed, compute(published.GEOMETRY, setting, convention).average))
    return rows


def deviations(convention: Convention) -> list[float]:
    """How far the disturbances that the paper prints are from the computed ones, each as a share of
    its own."""
    return [abs(computed / printed - 1) for _, printed, computed in recomputed(convention)]
