"""A model of one's own: every method without training, at sizes that follow from L and L'.

Lengths are the same for every factor, so that one table can hold them all.
"""

from collections.abc import Iterator

from experiments.suites.suite import Chain, Suite


def lengths(model, factor):
    """L, and L' at each factor."""
    length = model.geometry.context_length
    return length, *sorted(round(length * each) for each in model.factors)


def quarters(model, factor):
    """A quarter of the longest L', and so on up to five."""
    longest = lengths(model, factor)[-1]
    return tuple(round(longest * count / 4) for count in range(1, 6))


def stride(model, factor):
    """Half of L."""
    return max(model.geometry.context_length // 2, 1)


def tokens(model, factor):
    """As many as the longest L', and L more."""
    return lengths(model, factor)[-1] + model.geometry.context_length


OPTIONS = {
    "perplexity": {"texts": "packaged:1", "lengths": lengths, "stride": stride, "tokens": tokens},
    "passkey": {"lengths": quarters, "depths": 3, "keys": 1},
    "ruler": {"lengths": lengths, "samples": 1},
    "longbench_e": {"limit": 20},
    "open_llm": {"limit": 300},
}
QUICK = {
    "passkey": {"depths": 1},
    "ruler": None,
    "longbench_e": {"limit": 1},
    "open_llm": {"limit": 10},
}


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(setting, factor, OPTIONS)


PARTS = (untrained,)
