"""A model of one's own, beyond the paper: loss by position, and disturbance against loss over selections of pairs."""

from collections.abc import Iterator

from experiments.kit.pool import Chain
from experiments.suites.commands import BOOKS, Suite, step


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(setting, factor, [step("loss_by_position", reads=BOOKS, books=1)])
    every = max(suite.model.geometry.head_dim // 8 // 2 * 2, 2)
    for factor in suite.model.factors:
        yield suite.once(step("selections", factor=factor, every=every, quick=None))


PARTS = (untrained,)
