"""A model of one's own, beyond the paper: loss by position, and disturbance against loss over
selections of pairs."""

from collections.abc import Iterator

from experiments.suites.suite import Chain, Suite


def every(model, factor):
    """The step from one n̂ to the next: an eighth of d, even."""
    return max(model.geometry.head_dim // 8 // 2 * 2, 2)


OPTIONS = {"loss_by_position": {"packaged": 1}, "selections": {"every": every}}
QUICK = {"selections": None}


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(setting, factor, ["loss_by_position"])
    for factor in suite.model.factors:
        yield suite.once("selections", factor=factor)


PARTS = (untrained,)
