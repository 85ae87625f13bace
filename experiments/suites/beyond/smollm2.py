"""smollm2, beyond the paper: loss by position, newer rules, learned factors."""

from collections.abc import Iterator

from experiments.suites.beyond.parts import covering, last_tokens, learned_factors
from experiments.suites.smollm2 import (
    EVALUATIONS,
    FORMULA,
    INTERVALS,
    N_HATS,
    PAPERS,
    UNTRAINED,
    arms,
)
from experiments.suites.suite import Chain, Suite

NTK = ("ntk", {})
SIGNIFICANT = ("dprope-significant", {})
# Of the newer rules, the two of the least loss (results/smollm2/beyond/loss_by_position).
NEWER = [("longrope2", {}), ("mrrope-pro", {})]
# The released model states L = 8,192; the published configuration of its pre-training states
# sequences of 2,048 tokens, 2 T tokens of them (huggingface/smollm, text/pretraining/smollm2,
# config_smollm2_135M.yaml at a041759).
COVERED = ("dprope-covered", {"covered_length": 2048})
COVERING = ("dprope-covered", {})
ABLATIONS = [("dprope", {"n_hat": 30})]
SELECTIONS = [*N_HATS, *ABLATIONS, ("dprope", {"n_hat": 32}), *INTERVALS]
# YaRN's attention factor at s = 2, to five digits
WARM = {"attention_factor": 1.0693}
# YaRN without its attention factor, and DPRoPE with it.
ATTENTION_FACTORS = [
    ("yarn", {"attention_factor": 1.0}),
    ("dprope", {"n_hat": 28, **WARM}),
]


def parts(model, factor):
    """Of War and Peace's parts, twelve have 32k tokens."""
    return "parts:12" if factor == 4 else "parts:17"


OPTIONS = {
    # In float32, as methods differ by thousandths.
    "loss_by_position": {"texts": parts, "dtype": "float32"},
    "needles": {"texts": parts, "dtype": "bfloat16"},
    # Within 75 steps the loss is flat from both starts: seven minutes of a GPU, days of a core.
    "learned": {"steps": 100, "evaluate_every": 5, "dtype": "float32"},
}
QUICK = {
    "loss_by_position": {"texts": "parts:1"},
    "needles": {"texts": "parts:1"},
    "learned": None,
}
POSITIONS = ["loss_by_position"]
KEYS = ["needles"]


def trained(suite: Suite) -> Iterator[Chain]:
    for setting, seed, training in arms(suite):
        yield suite.fine_tuned(setting, 2, seed, [*POSITIONS, *KEYS], **training)


def untrained(suite: Suite) -> Iterator[Chain]:
    # every method that needs no training, a new one too
    for setting in (*suite.model.comparison(2), covering(suite, 2), COVERED):
        yield suite.untrained(setting, 2, POSITIONS)
    for setting in (*NEWER, NTK):
        yield suite.untrained(setting, 2, EVALUATIONS)
    for setting in suite.distinct(ABLATIONS, 2, [SIGNIFICANT]):
        yield suite.untrained(setting, 2, EVALUATIONS)
    for setting in suite.distinct(SELECTIONS, 2, [*UNTRAINED, SIGNIFICANT]):
        yield suite.untrained(setting, 2, POSITIONS)
    for setting in ATTENTION_FACTORS:
        yield suite.untrained(setting, 2, ["passkey", *POSITIONS])
    yield suite.untrained((PAPERS[0], PAPERS[1] | WARM), 2, POSITIONS)
    if not suite.quick:
        for setting in (*suite.model.comparison(4), covering(suite, 4), COVERED):
            yield suite.untrained(setting, 4, POSITIONS)


def keys(suite: Suite) -> Iterator[Chain]:
    """Keys in books: pairs and attention factors apart, the model that is not extended, and a new
    method."""
    extended = [(method, {**options, **WARM}) for method, options in (PAPERS, FORMULA)]
    without = ("yarn", {"attention_factor": 1.0})
    for setting in (*UNTRAINED, without, *extended, COVERING, *NEWER, *suite.new):
        yield suite.untrained(setting, 2, KEYS)
    yield from last_tokens(suite, 2, WARM["attention_factor"], 1.15)


def learned(suite: Suite) -> Iterator[Chain]:
    for start in ("yarn", "original"):
        yield from learned_factors(suite, start, 2, 0, POSITIONS)


FIRST = (trained,)  # loss by position is what decides, so a fine-tune is scored by it at once
PARTS = untrained, keys, learned
