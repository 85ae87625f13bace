"""smollm2: what of the paper a CPU can measure of a real pre-trained model; few samples, as 16k tokens take minutes."""

from collections.abc import Iterator

from experiments.base_models import smollm2
from experiments.kit.pool import Chain
from experiments.suites.commands import BENCHMARK, BOOKS, CORPUS, Suite, step

FACTOR = 2
# DPRoPE with t = 0 and with n̂; a setting is a method and its options.
DPROPE = [("dprope", {}), ("dprope", {"n_hat": smollm2.MODEL.n_hat[FACTOR]})]
TRAINED = [("pi", {}), ("yarn", {}), *DPROPE, ("clex", {})]
UNTRAINED = [("original", {}), ("pi", {}), ("yarn", {}), *DPROPE]
# Of the paper's 96-56 of 128 dimensions, and fewer; 48 are those of t = 0.
N_HATS = [("dprope", {"n_hat": n_hat}) for n_hat in (48, 40, 36, 28, 24)]
INTERVALS = [("dprope", {"intervals": b}) for b in (90, 180, 360, 720)]

# Each step is one call of a script in experiments/; `quick` is what differs under --quick, None leaves the step out.
# Fine-tuning at L' is beyond a CPU: a quarter of its length here, a 64th of the base model's tokens a step.
tune = step("finetune", reads=CORPUS, length=4096, batch=1, steps=20, quick={"steps": 2})
passkey = step("passkey", lengths=(4096, 8192, 12288, 16384), depths=3, keys=1, quick=None)
open_llm = step("open_llm", reads=BENCHMARK, limit=500, shots=5, quick=None)
perplexity = step(
    "perplexity", reads=BOOKS, books=3, lengths=(8192, 16384), stride=(4096, 8192), by_position=True, quick=None
)
ruler = step("ruler", lengths=(4096, 8192, 16384), samples=1, quick=None)
EVALUATIONS = passkey, open_llm, perplexity, ruler


def trained(suite: Suite) -> Iterator[Chain]:
    for setting in TRAINED:
        yield suite.fine_tuned(tune, setting, FACTOR, 0, EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for setting in UNTRAINED:
        yield suite.untrained(setting, FACTOR, EVALUATIONS)
    yield suite.once(step("disturbance"))


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """As Table 5, without training."""
    for setting, same in suite.distinct(N_HATS, FACTOR, known=UNTRAINED):
        yield suite.untrained(setting, FACTOR, EVALUATIONS, same)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """As Table 7, without training."""
    for setting, same in suite.distinct(INTERVALS, FACTOR, known=UNTRAINED + N_HATS):
        yield suite.untrained(setting, FACTOR, [open_llm], same)


def after(suite: Suite) -> Iterator[Chain]:
    """Runs last and alone: what is timed side by side meets the same machine."""
    methods, weights = ("pi", "yarn", "dprope", "clex"), suite.checkpoint(("clex", {}), FACTOR, seed=0)
    how = {"factor": FACTOR, "method": methods, "weights": weights, "length": 256, "precision": 0.02}
    yield suite.once(step("time_cost", **how, quick={"repeats": 1}))


PARTS = trained, untrained, ablation_n_hat, ablation_intervals
