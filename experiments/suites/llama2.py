"""LLaMA2-7B and 13B: what the paper measured, as it measured it."""

from collections.abc import Iterator

from experiments.base_models import llama2_13b
from experiments.base_models.llama2 import N_HAT
from experiments.suites import paper
from experiments.suites.paper import BENCHMARKED, trained, untrained
from experiments.suites.suite import Chain, Suite, intervals, n_hats, times

SEEDS = 1
LENGTHS = 4096, 8192, 16384
N_HATS = n_hats(llama2_13b.MODEL)
INTERVALS = intervals(n_hat=N_HAT[2])
ABLATIONS = N_HATS + INTERVALS

OPTIONS = {
    "finetune": {},
    "longbench_e": {},
    "open_llm": {},
    "ruler": {"lengths": LENGTHS, "samples": 500},
    # The paper's texts are PG19's; give them by --texts.
    "perplexity": {"texts": "packaged:3", "lengths": LENGTHS, "stride": 256},
    "passkey": {"lengths": (2048, 4096, 8192, 12288, 16384, 20480), "keys": 10},
    "time_cost": {"length": 8192, "checkpointing": True},
}
# Just enough to show that each one runs.
QUICK = {
    "finetune": {"steps": 2},
    "longbench_e": {"limit": 1},
    "open_llm": {"limit": 10},
    "ruler": {"lengths": LENGTHS[:2], "samples": 1},
    "perplexity": {"texts": "packaged:1", "lengths": LENGTHS[:2], "tokens": 16384},
    "passkey": {"lengths": LENGTHS[:2], "depths": 3, "keys": 1},
    "time_cost": {"repeats": 1},
}
EVALUATIONS = *BENCHMARKED, "ruler", "perplexity", "passkey"


def trained_settings(factor):
    """DPRoPE is fine-tuned at n̂ alone, as in the paper; a setting is a method and its options."""
    return [("pi", {}), ("yarn", {}), ("dprope", {"n_hat": N_HAT[factor]}), ("clex", {})]


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """Of 13B."""
    if suite.name == "llama2-13b":
        yield from paper.ablation_n_hat(suite)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """Of 13B, at the n̂ of the main comparison."""
    if suite.name == "llama2-13b":
        yield from paper.ablation_intervals(suite)


PARTS = trained, untrained, ablation_n_hat, ablation_intervals, times
