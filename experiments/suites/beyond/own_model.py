"""A model of one's own, beyond the paper: loss by position, and disturbance against loss over
selections of pairs."""

from collections.abc import Iterator

from experiments.suites.chains import Chain
from experiments.suites.steps import TEXTS, Suite, step

positions = step("loss_by_position", reads=TEXTS, packaged=1)
selections = step(
    "selections",
    every=lambda model, factor: max(model.geometry.head_dim // 8 // 2 * 2, 2),
    quick=None,
)


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(setting, factor, [positions])
    for factor in suite.model.factors:
        yield suite.once(selections, factor=factor)


PARTS = (untrained,)
