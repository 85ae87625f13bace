import numpy as np
import pytest

from core import rope
from tests.analysis.made import made

__all__ = ["made"]


@pytest.fixture
def toy(monkeypatch):
    """A method of a stranger's."""

    def linear_ramp(geometry, factor, *, slope: float = 1.0):
        weight = np.clip(np.linspace(0, slope, geometry.pairs), 0, 1)
        return rope.RopeScaling(geometry.inv_freq / (1 + weight * (factor - 1)), 1.0, weight == 1)

    monkeypatch.setitem(rope.METHODS, "linear-ramp", rope.Method("linear-ramp", "Linear ramp", linear_ramp))
    return "linear-ramp"


@pytest.fixture
def everything(made, toy):
    """Every experiment of a registered, a stranger's and an unknown method, at a factor that no list has."""
    settings = [("original", {}), ("yarn", {}), (toy, {"slope": 0.5}), (toy, {"slope": 0.5, "attention_factor": 1.2})]
    settings += [("never-heard-of", {"strength": 3})]
    for method, options in settings:
        made.everything(method, options, factor=3)
        if method != "original":
            made.everything(method, options, factor=3, seed=7, better=0.5)
    way = {"precision": "float64", "convention": "released", "average": 1e-3, "interpolated_dimensions": 2}
    for method, options in settings:
        made.add("disturbance", method, [way], factor=3, options=options)
    cell = {"rounds": 3, "relative_to_pi": 1.0, "low": 0.9, "high": 1.1, "phase": "train"}
    times = [cell | {"method": method, "options": options, "again": False} for method, options in settings]
    made.add("time_cost", None, times, factor=3, length=512)
    return made


@pytest.fixture
def varied(everything):
    """The same with DPRoPE at two n̂ and two b, without training."""
    for experiment in ("loss_by_position", "open_llm", "longbench_e"):
        like = next(r for f, r in everything.records.items() if f.startswith(experiment) and "training" not in r)
        for options in ({"n_hat": 10}, {"n_hat": 20}, {"intervals": 10}, {"intervals": 20}):
            everything.records[f"{experiment}/{options}.json"] = like | {"method": "dprope", "options": options}
    return everything
