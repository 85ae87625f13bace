"""smollm2, beyond the paper: more methods, loss by position up to 32k tokens, learned factors, YaRN's temperature."""

from collections.abc import Iterator

from experiments.kit.pool import Chain
from experiments.suites.beyond.parts import covering, learned_factors, temperature_swapped
from experiments.suites.commands import BOOKS, CORPUS, Suite, step
from experiments.suites.smollm2 import EVALUATIONS, FACTOR, INTERVALS, N_HATS, TRAINED, UNTRAINED, tune

SIGNIFICANT, SAME_AS_SIGNIFICANT = ("dprope-significant", {}), ("dprope", {"n_hat": 30})
# The released model states L = 8,192; the published configuration of its pre-training states sequences of 2,048 tokens,
# 2 T tokens of them (huggingface/smollm, text/pretraining/smollm2, config_smollm2_135M.yaml at a041759).
COVERED = ("dprope-covered", {"covered_length": 2048})

positions = step("loss_by_position", reads=BOOKS, books=3)
positions_at_4 = step("loss_by_position", books=1, quick=None)
# Within 75 steps the loss is flat from both starts: seven minutes of a GPU, days of a core.
learn = step("learned", reads=CORPUS, steps=100, evaluate_every=5, quick=None)


def trained(suite: Suite) -> Iterator[Chain]:
    ours = covering(suite, FACTOR)
    for setting in (SIGNIFICANT, ours):
        yield suite.fine_tuned(tune, setting, FACTOR, 0, EVALUATIONS)
    for setting in (*TRAINED, SIGNIFICANT, ours):
        yield suite.fine_tuned(tune, setting, FACTOR, 0, [positions])


def untrained(suite: Suite) -> Iterator[Chain]:
    for setting in (("ntk", {}), SIGNIFICANT):
        yield suite.untrained(setting, FACTOR, EVALUATIONS)
    for factor, loss in ((2, positions), (4, positions_at_4)):
        # every method that needs no training, a new one too
        for setting in (*suite.model.comparison(factor), covering(suite, factor), COVERED):
            yield suite.untrained(setting, factor, [loss])
    yield suite.once(step("selections", quick={"every": 32}))


def ablation_n_hat(suite: Suite) -> Iterator[Chain]:
    for setting, same in suite.distinct([SAME_AS_SIGNIFICANT], FACTOR, known=[SIGNIFICANT]):
        yield suite.untrained(setting, FACTOR, EVALUATIONS, same)
    for setting, same in suite.distinct([*N_HATS, SAME_AS_SIGNIFICANT], FACTOR, known=[*UNTRAINED, SIGNIFICANT]):
        yield suite.untrained(setting, FACTOR, [positions], same)


def ablation_intervals(suite: Suite) -> Iterator[Chain]:
    for setting, same in suite.distinct(INTERVALS, FACTOR, known=UNTRAINED + N_HATS):
        yield suite.untrained(setting, FACTOR, [positions], same)


def temperature(suite: Suite) -> Iterator[Chain]:
    for setting in temperature_swapped(suite, FACTOR):
        yield suite.untrained(setting, FACTOR, [positions])


def learned(suite: Suite) -> Iterator[Chain]:
    for start in ("yarn", "original"):
        yield from learned_factors(suite, learn, start, FACTOR, 0, [positions])


PARTS = trained, untrained, ablation_n_hat, ablation_intervals, temperature, learned
