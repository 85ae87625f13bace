"""A model of one's own: every method without training, at sizes that follow from L and L'.

Lengths are the same for every factor, so that one table can hold them all.
"""

from collections.abc import Iterator

from experiments.suites.chains import Chain
from experiments.suites.steps import BENCHMARK, TEXTS, Suite, step


def lengths(model, factor=None):
    """L, and L' at each factor."""
    length = model.geometry.context_length
    return length, *sorted(round(length * each) for each in model.factors)


perplexity = step(
    "perplexity",
    reads=TEXTS,
    packaged=1,
    lengths=lengths,
    stride=lambda model, factor: max(lengths(model)[0] // 2, 1),
    tokens=lambda model, factor: lengths(model)[-1] + lengths(model)[0],
)
passkey = step(
    "passkey",
    lengths=lambda model, factor: tuple(
        round(lengths(model)[-1] * quarters / 4) for quarters in range(1, 6)
    ),
    depths=3,
    keys=1,
    fitting=True,
    quick={"depths": 1},
)
ruler = step("ruler", lengths=lengths, samples=1, fitting=True, quick=None)
longbench_e = step("longbench_e", reads=BENCHMARK, limit=20, quick={"limit": 1})
open_llm = step("open_llm", reads=BENCHMARK, limit=300, quick={"limit": 10})


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in suite.model.factors:
        for setting in suite.model.comparison(factor):
            yield suite.untrained(
                setting, factor, (perplexity, passkey, ruler, longbench_e, open_llm)
            )


PARTS = (untrained,)
