"""LLaMA2, beyond the paper: more methods, without training."""

from collections.abc import Iterator

from experiments.suites.llama2 import EVALUATIONS
from experiments.suites.paper import FACTORS
from experiments.suites.suite import Chain, Suite

METHODS = "ntk", "mrrope-pro", "dprope-significant", "dprope-covered"


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for method in METHODS:
            yield suite.untrained((method, {}), factor, EVALUATIONS)


PARTS = (untrained,)
