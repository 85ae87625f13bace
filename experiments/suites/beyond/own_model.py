"""A model of one's own, beyond the paper: loss by position, keys in a book."""

from collections.abc import Iterator

from experiments.suites.suite import Chain, Suite

OPTIONS = {"loss_by_position": {"texts": "packaged:1"}, "needles": {"texts": "packaged:1"}}


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(setting, factor, OPTIONS)


PARTS = (untrained,)
