"""What the paper measured, and tiny's suite and LLaMA2's repeat: fine-tunes, the models without
training, and the ablations.

A suite with these parts states SEEDS, EVALUATIONS, N_HATS, INTERVALS and `trained_settings`.
"""

from collections.abc import Iterator

from core.setting import Choice
from experiments.base_models.model import BaseModel
from experiments.suites.suite import Chain, Suite

FACTORS = 2, 4
BENCHMARKED = "longbench_e", "open_llm"


def untrained_settings(model: BaseModel, factor: float) -> list[Choice]:
    """DPRoPE with t = 0 and with the paper's n̂; a setting is a method and its options."""
    plain = [(method, {}) for method in ("original", "pi", "yarn", "dprope")]
    return [*plain, ("dprope", {"n_hat": model.n_hat[factor]})]


def trained(suite: Suite) -> Iterator[Chain]:
    for seed in suite.seeds(suite.stated.SEEDS):
        for factor in FACTORS:
            for setting in [*suite.stated.trained_settings(factor), *suite.new]:
                yield suite.fine_tuned(setting, factor, seed, suite.stated.EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for setting in [*untrained_settings(suite.model, factor), *suite.new]:
            yield suite.untrained(setting, factor, suite.stated.EVALUATIONS)


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """Tables 4 and 5."""
    for setting in suite.distinct(suite.stated.N_HATS, 2, suite.stated.trained_settings(2)):
        yield suite.fine_tuned(setting, 2, 0, BENCHMARKED)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """Tables 6 and 7."""
    others = suite.stated.trained_settings(2) + suite.stated.N_HATS
    for setting in suite.distinct(suite.stated.INTERVALS, 2, others):
        yield suite.fine_tuned(setting, 2, 0, BENCHMARKED)
