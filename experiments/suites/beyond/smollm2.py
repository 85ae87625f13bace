"""smollm2, beyond the paper: loss by position, the two best newer rules, learned factors."""

from collections.abc import Iterator
from dataclasses import replace

from experiments.ablation_intervals import intervals
from experiments.suites.beyond.parts import covering, learned_factors
from experiments.suites.chains import Chain
from experiments.suites.smollm2 import (
    EVALUATIONS,
    HEADLINE,
    N_HATS,
    PAPERS,
    SEEDS,
    TRAINED,
    UNTRAINED,
    YARN,
    ZERO,
    passkey,
    tune,
)
from experiments.suites.steps import CORPUS, TEXTS, Suite, step

# By the losses of 20 texts without training (results/smollm2/beyond/h200), LongRoPE2's rule is
# ahead of YaRN, and MrRoPE-Pro is the next.
BEST, NEXT = ("longrope2", {}), ("mrrope-pro", {})
SIGNIFICANT = ("dprope-significant", {})
# The released model states L = 8,192; the published configuration of its pre-training states
# sequences of 2,048 tokens, 2 T tokens of them (huggingface/smollm, text/pretraining/smollm2,
# config_smollm2_135M.yaml at a041759).
COVERED = ("dprope-covered", {"covered_length": 2048})

# In float32, as methods differ by thousandths. Of War and Peace's parts, twelve have 32k tokens.
positions = step(
    "loss_by_position",
    reads=TEXTS,
    parts=lambda model, factor: {4: 12}.get(factor, 17),
    dtype="float32",
)
positions_at_4 = replace(positions, quick=None)
# Within 75 steps the loss is flat from both starts: seven minutes of a GPU, days of a core.
selections = step("selections", dtype="float32", quick={"every": 32})
learn = step("learned", reads=CORPUS, steps=100, evaluate_every=5, dtype="float32", quick=None)


def trained(suite: Suite) -> Iterator[Chain]:
    """Loss by position of every fine-tune, and the two newer rules."""
    for seed in suite.seeds(SEEDS):
        for setting in TRAINED if seed == 0 else HEADLINE:
            yield suite.fine_tuned(tune, setting, 2, seed, [positions])
    for setting in (BEST, NEXT):
        yield suite.fine_tuned(tune, setting, 2, 0, [positions, *EVALUATIONS])
    for setting, same in suite.distinct(N_HATS, 2, TRAINED):
        yield suite.fine_tuned(tune, setting, 2, 0, [positions], same)
    for setting in (YARN, PAPERS[4], ZERO, BEST):
        yield suite.fine_tuned(tune, setting, 4, 0, [passkey, positions_at_4])


def untrained(suite: Suite) -> Iterator[Chain]:
    # every method that needs no training, a new one too
    for setting in (*suite.model.comparison(2), covering(suite, 2), COVERED):
        yield suite.untrained(setting, 2, [positions])
    for setting in (BEST, NEXT, ("ntk", {}), SIGNIFICANT):
        yield suite.untrained(setting, 2, EVALUATIONS)
    for setting, same in suite.distinct([*N_HATS, *intervals()], 2, [*UNTRAINED, SIGNIFICANT]):
        yield suite.untrained(setting, 2, [positions], same)
    yield suite.untrained(BEST, 4, [passkey])
    for setting in (*suite.model.comparison(4), covering(suite, 4), COVERED):
        yield suite.untrained(setting, 4, [positions_at_4])
    yield suite.once(selections)


def learned(suite: Suite) -> Iterator[Chain]:
    for start in ("yarn", "original"):
        yield from learned_factors(suite, learn, start, 2, 0, [positions])


PARTS = trained, untrained, learned
