"""smollm2: the paper's comparison on a real pre-trained model, fine-tuned at L'.

The fine-tunes come first, in the order of their worth. `timeout 13m` before the command measures as
much as the time allows, and the same command goes on later. Give the books to train on by --corpus
and those to score by --texts. Under --quick a CPU measures all of it, at small sizes.
"""

from collections.abc import Iterator

from core.setting import Choice
from experiments.base_models import smollm2
from experiments.suites.suite import Chain, Suite, intervals, times

# A setting is a method and its options.
ORIGINAL = ("original", {})
PI = ("pi", {})
YARN = ("yarn", {})
PAPERS = ("dprope", {"n_hat": smollm2.MODEL.n_hat[2]})
FORMULA = ("dprope", {})  # t = 0
CLEX = ("clex", {})

WARM_PAPERS = ("dprope", {"n_hat": smollm2.MODEL.n_hat[2], "attention_factor": 1.0693})  # YaRN's

# What is fine-tuned, at s = 2: a setting, a seed, and what sets its training apart. The first round
# read whole books, 11 of them; in the second each step reads another book.
EACH = {"per_book": 1}
ARMS = [
    *((setting, 0, {}) for setting in (YARN, PAPERS, FORMULA)),
    *((setting, 1, EACH) for setting in (YARN, PAPERS, ORIGINAL, WARM_PAPERS, FORMULA, PI)),
    *((setting, seed, EACH) for seed in (2, 3) for setting in (YARN, PAPERS)),
    (CLEX, 0, {}),
]
UNTRAINED = [ORIGINAL, YARN, PAPERS, PI, FORMULA]
N_HATS = [("dprope", {"n_hat": n_hat}) for n_hat in (24, 28, 36, 40, 48)]
INTERVALS = intervals()
ABLATIONS = N_HATS + INTERVALS

# Without --texts, the texts are parts of War and Peace, which no one trains on.
OPTIONS = {
    "finetune": {},
    "passkey": {"keys": 10},
    "perplexity": {"texts": "parts:17", "tokens": 20480},
    "ruler": {"lengths": (4096, 8192, 16384), "samples": 10},
    "open_llm": {"limit": 500, "shots": 5},
    "time_cost": {"length": 256, "precision": 0.02},
}
QUICK = {
    "finetune": {"length": 1024, "batch": 1, "steps": 1},
    "passkey": {"lengths": (1024, 2048), "depths": 1, "keys": 1},
    "perplexity": {"texts": "parts:1", "lengths": (1024, 2048), "stride": 512, "tokens": 2560},
    "ruler": {"lengths": (4096,), "samples": 1, "tasks": ("niah_single_1",)},
    "open_llm": None,
    "time_cost": {"repeats": 1},
}
EVALUATIONS = "passkey", "perplexity", "ruler", "open_llm"


def arms(suite: Suite) -> list[tuple[Choice, int, dict]]:
    """ARMS, those of the first round alone under --quick, and each new method with one seed."""
    listed = [arm for arm in ARMS if arm[1] in suite.seeds(4)]
    return listed + [(setting, 1, EACH) for setting in suite.new]


def trained(suite: Suite) -> Iterator[Chain]:
    for setting, seed, training in arms(suite):
        yield suite.fine_tuned(setting, 2, seed, EVALUATIONS, **training)


def untrained(suite: Suite) -> Iterator[Chain]:
    for setting in [*UNTRAINED, *suite.new]:
        yield suite.untrained(setting, 2, EVALUATIONS)


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    """As Table 5, without training."""
    for setting in suite.distinct(N_HATS, 2, UNTRAINED):
        yield suite.untrained(setting, 2, EVALUATIONS)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    """As Table 7, without training."""
    for setting in suite.distinct(INTERVALS, 2, UNTRAINED + N_HATS):
        yield suite.untrained(setting, 2, ["open_llm"])


PARTS = trained, untrained, ablation_n_hat, ablation_intervals, times
