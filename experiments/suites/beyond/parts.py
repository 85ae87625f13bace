"""What several suites measure beyond the paper."""

from collections.abc import Iterable, Iterator

from experiments.kit import records
from experiments.suites.chains import Chain, Setting
from experiments.suites.steps import Step, Suite


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
