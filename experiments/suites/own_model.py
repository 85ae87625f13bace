"""A model of one's own: every method without training, at sizes that follow from L and L'."""

from collections.abc import Iterator

from experiments.kit.pool import Chain
from experiments.suites.commands import BENCHMARK, BOOKS, Suite, step


def evaluations(suite: Suite):
    """Lengths are the same for every factor, so that one table can hold them all."""
    context_length = suite.model.geometry.context_length
    extended = sorted(round(context_length * factor) for factor in suite.model.factors)
    lengths, longest = (context_length, *extended), extended[-1]
    return (
        step(
            "perplexity",
            reads=BOOKS,
            books=1,
            lengths=lengths,
            stride=max(context_length // 2, 1),
            tokens=longest + context_length,
            quick={"tokens": longest + context_length // 2},
        ),
        step(
            "passkey",
            lengths=tuple(round(longest * quarters / 4) for quarters in range(1, 6)),
            depths=3,
            keys=1,
            fitting=True,
            quick={"depths": 1},
        ),
        step("ruler", lengths=lengths, samples=1, fitting=True, quick=None),
        step("longbench_e", reads=BENCHMARK, limit=20, quick={"limit": 1}),
        step("open_llm", reads=BENCHMARK, limit=300, quick={"limit": 10}),
    )


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(setting, factor, evaluations(suite))
        yield suite.once(step("disturbance", factor=factor))


PARTS = (untrained,)
