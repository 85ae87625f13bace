"""smollm2: the paper's comparison on a real pre-trained model, fine-tuned at L'; for one GPU and
some hours.

The chains are in the order of their worth: what README's claims compare comes first. `timeout 13m`
before the command measures as much as the time allows, and the same command goes on later. Under
--quick a CPU measures all of it, at small sizes.
"""

from collections.abc import Iterator

from experiments.ablation_intervals import intervals
from experiments.ablation_n_hat import n_hats, vary_n_hat
from experiments.base_models import smollm2
from experiments.suites.chains import Chain
from experiments.suites.steps import BENCHMARK, CORPUS, TEXTS, Suite, step

FACTORS, SEEDS = (2, 4), 3
# The paper's n̂ by factor, and t = 0; a setting is a method and its options.
PAPERS = {factor: ("dprope", {"n_hat": smollm2.MODEL.n_hat[factor]}) for factor in FACTORS}
YARN, ZERO = ("yarn", {}), ("dprope", {})
HEADLINE = [YARN, PAPERS[2]]
TRAINED = [*HEADLINE, ("pi", {}), ZERO, ("clex", {})]
UNTRAINED = [("original", {}), *TRAINED[:-1]]
N_HATS = n_hats(smollm2.MODEL)

# Each step is one call of a script in experiments/; `quick` is what differs under --quick, None
# leaves the step out. Without --texts, the texts are parts of War and Peace, which no one trains
# on.
tune = step("finetune", reads=CORPUS, quick={"length": 1024, "batch": 1, "steps": 1})
passkey = step("passkey", keys=10, quick={"lengths": (1024, 2048), "depths": 1, "keys": 1})
perplexity = step(
    "perplexity",
    reads=TEXTS,
    parts=17,
    tokens=20480,
    quick={"lengths": (1024, 2048), "stride": 512, "tokens": 2560},
)
ruler = step(
    "ruler",
    lengths=(4096, 8192, 16384),
    samples=10,
    quick={"lengths": (4096,), "samples": 1, "tasks": ("niah_single_1",)},
)
open_llm = step("open_llm", reads=BENCHMARK, limit=500, shots=5, quick=None)
time_cost = step(
    "time_cost",
    factor=2,
    method=("pi", "yarn", "dprope", "clex"),
    length=256,
    precision=0.02,
    quick={"repeats": 1},
)
EVALUATIONS = passkey, perplexity, ruler, open_llm


def headline(suite: Suite) -> Iterator[Chain]:
    """What README's claims compare."""
    for setting in HEADLINE:
        yield suite.fine_tuned(tune, setting, 2, 0, EVALUATIONS)
    for setting in (("original", {}), *HEADLINE):
        yield suite.untrained(setting, 2, EVALUATIONS)


def trained(suite: Suite) -> Iterator[Chain]:
    for setting in TRAINED:
        yield suite.fine_tuned(tune, setting, 2, 0, EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for setting in UNTRAINED:
        yield suite.untrained(setting, 2, EVALUATIONS)


def seeds(suite: Suite) -> Iterator[Chain]:
    for seed in suite.seeds(SEEDS)[1:]:
        for setting in HEADLINE:
            yield suite.fine_tuned(tune, setting, 2, seed, EVALUATIONS)


def four_times(suite: Suite) -> Iterator[Chain]:
    """s = 4, L' = 32k tokens."""
    for setting in (YARN, PAPERS[4], ZERO):
        yield suite.fine_tuned(tune, setting, 4, 0, [passkey])
        yield suite.untrained(setting, 4, [passkey])


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """As Table 5."""
    yield from vary_n_hat(suite, tune, EVALUATIONS, TRAINED)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """As Table 7, without training."""
    for setting, same in suite.distinct(intervals(), 2, UNTRAINED + N_HATS):
        yield suite.untrained(setting, 2, [open_llm], same)


def times(suite: Suite) -> Iterator[Chain]:
    """As it needs the checkpoint of CLEX, it runs last and alone: all methods meet the same idle
    machine."""
    yield suite.once(time_cost, weights=suite.checkpoint(("clex", {}), 2, seed=0))


PARTS = headline, trained, untrained, seeds, four_times, ablation_n_hat, ablation_intervals, times
