"""What several suites measure beyond the paper."""

from collections.abc import Iterable, Iterator

from core import rope
from experiments.kit import records
from experiments.suites.chains import Chain, Setting
from experiments.suites.steps import Step, Suite


def temperature_swapped(suite: Suite, factor: float) -> list[Setting]:
    """YaRN without its attention temperature, and DPRoPE at the covering n̂ with it.

    Comparing these shows how much of the methods' difference comes from the choice of pairs.
    """
    temperature = round(rope.scale(suite.model.geometry, "yarn", factor).attention_factor, 4)
    method, options = covering(suite, factor)
    return [("yarn", {"attention_factor": 1.0}), (method, {**options, "attention_factor": temperature})]


def covering(suite: Suite, factor: float) -> Setting:
    """DPRoPE at the least n̂ that interpolates every pair with a wavelength above L."""
    return "dprope", {"n_hat": suite.model.covering(factor)}


def learned_factors(
    suite: Suite, learn: Step, start: str, factor: float, seed: int, steps: Iterable[Step]
) -> Iterator[Chain]:
    """The chain that learns the factors λ_i from the model itself, from a method's own, and measures it with them."""
    name = f"from={records.run_name(start, factor, {}, seed)}"
    learning = suite.once(learn, **{"from": start}, factor=factor, seed=seed)
    if learning.commands:
        file = records.path(suite.results, suite.name, learning.name, name)
        measuring = suite.untrained(("factors", {"file": str(file)}), factor, steps)
        yield Chain(name, learning.commands + measuring.commands)
