"""tiny, beyond the paper: more methods, loss by position, learned factors."""

from collections.abc import Iterator

from experiments.suites.beyond.parts import covering, learned_factors
from experiments.suites.chains import Chain
from experiments.suites.steps import TEXTS, Step, Suite, step
from experiments.suites.tiny import (
    EVALUATIONS,
    FACTORS,
    SEEDS,
    passkey,
    perplexity,
    trained_settings,
    tune,
)

COMPARED = ("ntk", {}), ("dprope-significant", {}), ("mrrope-pro", {}), ("dprope-covered", {})
# What others scale by: a base 50 times as large, as Llama 3's; CoPE as in mlx-lm's port; DroPE
# before its fine-tune.
RECIPES = ("abf", {"base": 65000.0}), ("cope", {"by_period": True}), ("hardclip", {"clipped": 32})
# The learning rates at which books are compared: of the least loss beyond L on eight other books,
# at s = 2. PI has the one that all methods have in the paper's tables.
RATES = {"yarn": 3e-6, "dprope": 1e-5, "clex": 3e-6}
# The loss is flat within 80 steps at s = 2 and within 144 at s = 4.
learn = step("learned", steps=200, evaluate_every=4, quick={"steps": 2, "sequences": 1})
# On the beginnings of texts that no one trains on; those of the committed records are whole books
# (--texts).
positions = step("loss_by_position", reads=TEXTS, plays=39)
selections = step("selections")


def at_its_rate(method: str) -> Step:
    """Fine-tuning at the learning rate that was picked for the method."""
    rate = {"learning_rate": RATES[method]} if method in RATES else {}
    return step(tune.experiment, reads=tune.reads, quick=tune.quick, **rate)


def trained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for seed in suite.seeds(SEEDS):
            for setting in trained_settings(factor):
                yield suite.fine_tuned(at_its_rate(setting[0]), setting, factor, seed, [positions])
            yield suite.fine_tuned(tune, covering(suite, factor), factor, seed, EVALUATIONS)


def untrained(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for setting in (*COMPARED, covering(suite, factor)):
            yield suite.untrained(setting, factor, EVALUATIONS)
        for of in (
            ("yarn", "dprope") if factor == 4 else ()
        ):  # of two scales, the rows of each say all
            yield suite.untrained(("by-length", {"of": of}), factor, [perplexity, passkey])
        # every method that needs no training, a new one too
        without_temperature = "yarn", {"attention_factor": 1.0}
        for setting in (
            *suite.model.comparison(factor),
            covering(suite, factor),
            without_temperature,
            *RECIPES,
        ):
            yield suite.untrained(setting, factor, [positions])
    yield suite.once(selections)


def learned(suite: Suite) -> Iterator[Chain]:
    for factor in FACTORS:
        for start in ("yarn", "original"):
            for seed in suite.seeds(SEEDS):
                yield from learned_factors(suite, learn, start, factor, seed, [positions])
        yield suite.untrained(("longrope2", {}), factor, [passkey])


PARTS = trained, untrained, learned
