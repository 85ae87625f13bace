"""tiny, beyond the paper: more methods, loss by position, learned factors."""

from collections.abc import Iterator

from experiments.suites.beyond.parts import covering, last_tokens, learned_factors
from experiments.suites.paper import FACTORS, untrained_settings
from experiments.suites.suite import Chain, Suite
from experiments.suites.tiny import EVALUATIONS, SEEDS

COMPARED = ("ntk", {}), ("dprope-significant", {}), ("mrrope-pro", {}), ("dprope-covered", {})
# What others scale by: a base 50 times as large, as Llama 3's; CoPE as in mlx-lm's port; DroPE
# before its fine-tune.
RECIPES = ("abf", {"base": 65000.0}), ("hardclip", {"clipped": 32})
RULES = ("longrope2", {}), ("dprope-covered", {}), ("mrrope-pro", {})
WITHOUT_ATTENTION_FACTOR = ("yarn", {"attention_factor": 1.0})

OPTIONS = {
    # The loss is flat within 80 steps at s = 2 and within 144 at s = 4.
    "learned": {"steps": 200, "evaluate_every": 4},
    # On the beginnings of texts that no one trains on; those of the committed records are whole
    # books (--texts).
    "loss_by_position": {"texts": "plays:39"},
    "needles": {"texts": "plays:39"},
}
QUICK = {
    "learned": {"steps": 2, "sequences": 1},
    "loss_by_position": {"texts": "plays:1"},
    "needles": {"texts": "plays:1"},
}
READS_ITS_OWN = ("learned",)
POSITIONS = ["loss_by_position"]
KEYS = ["needles"]


def trained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for seed in suite.seeds(SEEDS):
            yield suite.fine_tuned(covering(suite, factor), factor, seed, EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for setting in (*COMPARED, covering(suite, factor)):
            yield suite.untrained(setting, factor, EVALUATIONS)
        if factor == 4:  # of two scales, the rows of each say all
            for of in ("yarn", "dprope"):
                yield suite.untrained(("by-length", {"of": of}), 4, ["perplexity", "passkey"])
        # every method that needs no training, a new one too
        every = [*suite.model.comparison(factor), covering(suite, factor)]
        for setting in (*every, WITHOUT_ATTENTION_FACTOR, *RECIPES):
            yield suite.untrained(setting, factor, POSITIONS)


def keys(suite: Suite) -> Iterator[Chain]:
    """Keys in plays, of the paper's methods, newer rules and a new one; and without extension."""
    for factor in FACTORS:
        papers = untrained_settings(suite.model, factor)
        for setting in (*papers, *RULES, WITHOUT_ATTENTION_FACTOR, *suite.new):
            yield suite.untrained(setting, factor, KEYS)
        yield from last_tokens(suite, factor)


def learned(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for start in ("yarn", "original"):
            for seed in suite.seeds(SEEDS):
                yield from learned_factors(suite, start, factor, seed, POSITIONS)
        yield suite.untrained(("longrope2", {}), factor, ["passkey"])


PARTS = trained, untrained, keys, learned
