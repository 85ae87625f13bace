"""LLaMA2-7B and 13B: what the paper measured, as it measured it."""

from collections.abc import Iterator

from experiments.base_models.llama2 import N_HAT
from experiments.suites.chains import Chain
from experiments.suites.steps import BENCHMARK, CORPUS, TEXTS, Suite, step

MODELS = "llama2-7b", "llama2-13b"
FACTORS = 2, 4
LENGTHS = 4096, 8192, 16384
# A setting is a method and its options. Tables 4 to 7 vary n̂, and b at the n̂ of the main comparison.
N_HATS = [("dprope", {"n_hat": n_hat}) for n_hat in (56, 64, 72, 80, 88, 96)]
INTERVALS = [("dprope", {"n_hat": N_HAT[2], "intervals": b}) for b in (90, 180, 360, 720)]

# Each step is one call of a script in experiments/. Under --quick, just enough to show that each one runs.
tune = step("finetune", reads=CORPUS, quick={"steps": 2})
longbench_e = step("longbench_e", reads=BENCHMARK, quick={"limit": 1})
open_llm = step("open_llm", reads=BENCHMARK, quick={"limit": 10})
ruler = step("ruler", lengths=LENGTHS, samples=500, quick={"lengths": LENGTHS[:2], "samples": 1})
# The paper's texts are PG19's; give them by --texts.
perplexity = step(
    "perplexity", reads=TEXTS, packaged=3, lengths=LENGTHS, stride=256, quick={"lengths": LENGTHS[:2], "tokens": 16384}
)
passkey = step(
    "passkey",
    lengths=(2048, 4096, 8192, 12288, 16384, 20480),
    keys=10,
    quick={"lengths": LENGTHS[:2], "depths": 3, "keys": 1},
)
time_cost = step(
    "time_cost",
    factor=2,
    method=("pi", "yarn", "dprope", "clex"),
    length=8192,
    checkpointing=True,
    quick={"repeats": 1},
)
EVALUATIONS = longbench_e, open_llm, ruler, perplexity, passkey


def trained_settings(factor):
    """DPRoPE is fine-tuned at n̂ alone, as in the paper."""
    return [("pi", {}), ("yarn", {}), ("dprope", {"n_hat": N_HAT[factor]}), ("clex", {})]


def untrained_settings(factor):
    return [("original", {}), ("pi", {}), ("yarn", {}), ("dprope", {}), ("dprope", {"n_hat": N_HAT[factor]})]


def trained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for setting in trained_settings(factor):
            yield suite.fine_tuned(tune, setting, factor, 0, EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for setting in untrained_settings(factor):
            yield suite.untrained(setting, factor, EVALUATIONS)


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """Tables 4 and 5, of 13B."""
    if suite.name.startswith("llama2-13b"):
        for setting, same in suite.distinct(N_HATS, 2, known=trained_settings(2)):
            yield suite.fine_tuned(tune, setting, 2, 0, [longbench_e, open_llm], same)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """Tables 6 and 7, of 13B."""
    if suite.name.startswith("llama2-13b"):
        for setting, same in suite.distinct(INTERVALS, 2, known=trained_settings(2) + N_HATS):
            yield suite.fine_tuned(tune, setting, 2, 0, [longbench_e, open_llm], same)


def after(suite: Suite) -> Iterator[Chain]:
    """Runs last and alone: what is timed side by side meets the same machine."""
    yield suite.once(time_cost, weights=suite.checkpoint(("clex", {}), 2, seed=0))


PARTS = trained, untrained, ablation_n_hat, ablation_intervals
