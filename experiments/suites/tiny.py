"""tiny: every table and figure of the paper, on a model that was trained here.

`python -m experiments.rerun --model tiny` runs the chains of all PARTS side by side, and `times`
last. A chain is the commands that make one model and measure it. `suite` holds the options of that
command, such as --quick.
"""

from experiments.base_models import tiny
from experiments.suites.paper import (
    BENCHMARKED,
    ablation_intervals,
    ablation_n_hat,
    trained,
    untrained,
    untrained_settings,
)
from experiments.suites.suite import intervals, n_hats, times
from records import ROOT

SEEDS = 3
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
EVALUATIONS = "perplexity", "passkey", "ruler", *BENCHMARKED


def trained_settings(factor):
    """All of the others, and CLEX; a setting is a method and its options."""
    return [*untrained_settings(tiny.MODEL, factor)[1:], ("clex", {})]


PARTS = trained, untrained, ablation_n_hat, ablation_intervals, times
