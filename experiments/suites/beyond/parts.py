"""What several suites measure beyond the paper."""

from collections.abc import Iterable, Iterator

import records
from core.disturbance import select_interpolated, strategy_disturbance
from core.setting import Choice, Setting
from experiments.suites.suite import Chain, Suite


def covering(suite: Suite, factor: float) -> Choice:
    """DPRoPE at the least n̂ that interpolates every pair with a wavelength above L.

    Extrapolation would show these pairs angles never seen in pre-training.
    """
    geometry = suite.model.geometry
    slow = geometry.wavelength > geometry.context_length
    sizes = range(0, geometry.head_dim + 1, 2)
    disturbances = strategy_disturbance(geometry.inv_freq, geometry.context_length, factor)
    least = next(
        n_hat for n_hat in sizes if select_interpolated(*disturbances, n_hat=n_hat)[slow].all()
    )
    return "dprope", {"n_hat": least}


def last_tokens(suite: Suite, factor: float, *attention_factors: float) -> Iterator[Chain]:
    """The chains that ask for keys without extension, reading the last L tokens alone; also with
    attention factors."""
    for options in ({}, *({"attention_factor": each} for each in attention_factors)):
        asking = suite.once("needles", method="original", factor=factor, last=True, **options)
        yield Chain(Setting.make("original", options, factor).run_name(), asking.commands)


def learned_factors(
    suite: Suite, start: str, factor: float, seed: int, experiments: Iterable[str]
) -> Iterator[Chain]:
    """The chain that learns the factors λ_i from the model itself, from a method's own, and
    measures it with them."""
    name = f"from={Setting(start, (), factor).run_name(seed)}"
    learning = suite.once("learned", **{"from": start}, factor=factor, seed=seed)
    if learning.commands:
        file = records.path(suite.results, suite.name, "learned", name)
        measuring = suite.untrained(("factors", {"file": str(file)}), factor, experiments)
        yield Chain(name, learning.commands + measuring.commands, scored=measuring.name)
