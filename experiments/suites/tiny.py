"""tiny: every table and figure of the paper, on a model that was trained here.

`python -m experiments.rerun --model tiny` runs the chains of all PARTS side by side, and `times`
last. A chain is the commands that make one model and measure it. `suite` holds the options of that
command, such as --quick.
"""

from collections.abc import Iterator

from experiments.base_models import tiny
from experiments.suites.suite import Chain, Suite, intervals, n_hats, times
from records import ROOT

FACTORS = 2, 4
SEEDS = 3
N_HAT = tiny.MODEL.n_hat  # by factor
N_HATS = n_hats(tiny.MODEL)
INTERVALS = intervals()
ABLATIONS = N_HATS + INTERVALS
# Of RULER's 13 tasks, those whose prompts fit in 1,024 tokens of tiny's small vocabulary, what is
# generated included.
FITTING = (
    "niah_single_1",
    "niah_single_2",
    "niah_multikey_2",
    "niah_multikey_3",
    "vt",
    "cwe",
    "fwe",
)
# Benchmarks of its size, which were generated; the model's card names the commit.
BENCHMARKS = ROOT / "models" / "tiny" / "benchmarks"

OPTIONS = {
    "finetune": {},
    "perplexity": {"lengths": (1024, 2048, 4096), "texts": "parts:8", "tokens": 4352},
    "passkey": {"lengths": (512, 1024, 2048, 3072, 4096), "keys": 2},
    "ruler": {"samples": 4, "tasks": FITTING},
    "longbench_e": {"benchmarks": BENCHMARKS, "margin": 128, "new_tokens": 64},
    "open_llm": {"benchmarks": BENCHMARKS},
    "time_cost": {"length": 512},  # short sequences, many rounds
}
QUICK = {
    "finetune": {"steps": 2},
    "perplexity": {"lengths": (1024, 2048), "texts": "parts:1", "tokens": 2560},
    "passkey": {"lengths": (1024, 2048), "depths": 3, "keys": 1},
    "ruler": {"samples": 1, "lengths": (1024, 2048)},
    "longbench_e": {"limit": 1},
    "open_llm": {"limit": 10},
    "time_cost": {"repeats": 1},
}
READS_ITS_OWN = "perplexity", "longbench_e", "open_llm"
BENCHMARKED = "longbench_e", "open_llm"
EVALUATIONS = "perplexity", "passkey", "ruler", *BENCHMARKED


def dprope(factor):
    """DPRoPE with t = 0 and with the paper's n̂; a setting is a method and its options."""
    return [("dprope", {}), ("dprope", {"n_hat": N_HAT[factor]})]


def untrained_settings(factor):
    return [("original", {}), ("pi", {}), ("yarn", {}), *dprope(factor)]


def trained_settings(factor):
    return [("pi", {}), ("yarn", {}), *dprope(factor), ("clex", {})]


def trained(suite: Suite) -> Iterator[Chain]:
    for seed in suite.seeds(SEEDS):
        for factor in FACTORS:
            for setting in [*trained_settings(factor), *suite.new]:
                yield suite.fine_tuned(setting, factor, seed, EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for setting in [*untrained_settings(factor), *suite.new]:
            yield suite.untrained(setting, factor, EVALUATIONS)


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """Tables 4 and 5."""
    for setting in suite.distinct(N_HATS, 2, trained_settings(2)):
        yield suite.fine_tuned(setting, 2, 0, BENCHMARKED)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """Tables 6 and 7."""
    for setting in suite.distinct(INTERVALS, 2, trained_settings(2) + N_HATS):
        yield suite.fine_tuned(setting, 2, 0, BENCHMARKED)


PARTS = trained, untrained, ablation_n_hat, ablation_intervals, times
