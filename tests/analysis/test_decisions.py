"""Decisions against closed testing and against simulated repetitions: Holm, intervals, and how many samples decide."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from analysis.decisions import (
    ABOVE,
    BELOW,
    CONTRADICTED,
    REPRODUCED,
    UNDECIDED,
    Estimate,
    Needed,
    Region,
    decide,
    holm,
    needed,
    within,
)
from analysis.scores import Score

REPETITIONS = 4000
RNG = np.random.default_rng(7)


def closed_testing(p):
    """Holm is the closure of Bonferroni's test: the most that any subset with a hypothesis makes of its least p."""
    sets = [s for size in range(1, len(p) + 1) for s in combinations(range(len(p)), size)]
    return [min(1.0, max(len(s) * min(p[j] for j in s) for s in sets if i in s)) for i in range(len(p))]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_holm_is_closed_testing(n):
    for _ in range(50):
        p = RNG.uniform(0, 0.08, n)
        levels, corrected = holm(p)
        assert corrected == pytest.approx(closed_testing(p))
        assert (p <= levels).tolist() == (corrected <= 0.05).tolist()


def test_a_decision_is_what_its_interval_says():
    regions = [ABOVE, BELOW, within(1.0), Region(high=0.5)]
    for _ in range(300):
        family = []
        for _ in range(3):
            mean, below, above, spread = RNG.normal(0, 3), *RNG.uniform(0.1, 1, 2), RNG.choice([0.0, 0.5])
            family.append((Estimate(mean, below, above, 9, spread, 3, 2), RNG.choice(regions), None))
        for (_, region, _), decision in zip(family, decide(family)):
            low, high = decision.interval.low, decision.interval.high
            edges = [edge for edge in (region.low, region.high) if low <= edge <= high]
            wanted = UNDECIDED if edges else REPRODUCED if region.low < low and high < region.high else CONTRADICTED
            assert decision.verdict == wanted
            assert (decision.p <= 0.05) == (wanted != UNDECIDED)


def test_one_seed_after_another_gives_students_test():
    gaps = np.array([1.0, 2.5, 2.0])
    estimate = Estimate(gaps.mean(), over_seeds=stats.sem(gaps), seeds=3, freedom=2)
    (decision,) = decide([(estimate, ABOVE, 1.0)])
    low, high = stats.t.interval(0.95, 2, loc=gaps.mean(), scale=stats.sem(gaps))
    assert (decision.interval.low, decision.interval.high) == pytest.approx((low, high))
    assert decision.p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    assert decision.holds_effect


def test_a_bootstrap_interval_gives_back_itself():
    estimate = Estimate.of(Score(2.0, 1.0, 4.0, 30))
    found = estimate.interval()
    assert (found.low, found.high) == pytest.approx((1.0, 4.0))
    assert ABOVE.p(estimate) == pytest.approx(2 * stats.norm.sf(2 * 1.959964))


def test_a_number_without_error_is_decided_unless_it_is_the_edge():
    assert [decide([(Estimate(mean), ABOVE, None)])[0].verdict for mean in (1.0, 0.0, -1.0)] == [
        REPRODUCED,
        UNDECIDED,
        CONTRADICTED,
    ]


def share_decided(means, halves, region):
    low, high = means - halves, means + halves
    inside = (region.low < low) & (high < region.high)
    outside = (high < region.low) | (low > region.high)
    return np.mean(inside | outside)


@pytest.mark.parametrize(
    ("effect", "region", "level"),
    [
        (0.5, ABOVE, 0.05),
        (-0.3, ABOVE, 0.05 / 6),
        (0.0, within(0.4), 0.05),
        (0.1, within(0.5), 0.025),
        (1.0, BELOW, 0.01),
    ],
)
def test_the_samples_that_are_said_to_decide_do_in_four_of_five(effect, region, level):
    spread, measured = 4.0, 25
    estimate = Estimate(9.9, spread / 5, spread / 5, measured)
    found = needed(estimate, effect, region, level)
    means = RNG.normal(effect, spread / np.sqrt(found.samples), REPETITIONS)
    halves = stats.norm.isf(level / 2) * spread / np.sqrt(found.samples)
    assert found.seeds is None and share_decided(means, halves, region) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("effect", "level"), [(2.0, 0.05), (0.6, 0.05), (0.8, 0.0125)])
def test_the_seeds_that_are_said_to_decide_do_in_four_of_five(effect, level):
    spread = 1.0
    found = needed(Estimate(0.1, over_seeds=spread / np.sqrt(3), seeds=3, freedom=2), effect, ABOVE, level)
    assert found.samples is None
    draws = RNG.normal(effect, spread, (REPETITIONS, found.seeds))
    halves = stats.t.isf(level / 2, found.seeds - 1) * draws.std(axis=1, ddof=1) / np.sqrt(found.seeds)
    # Of so few seeds a whole one is a large step.
    assert 0.77 <= share_decided(draws.mean(axis=1), halves, ABOVE) <= 0.95


def test_samples_and_seeds_together_decide_where_neither_alone_does():
    samples_spread, seeds_spread = 20.0, 1.0
    estimate = Estimate(0.1, samples_spread / 10, samples_spread / 10, 100, seeds_spread / np.sqrt(3), 3, 2)
    found = needed(estimate, 0.5, ABOVE)
    means = RNG.normal(0.5, samples_spread / np.sqrt(found.samples), REPETITIONS) + RNG.normal(
        0, seeds_spread, (REPETITIONS, found.seeds)
    ).mean(axis=1)
    halves = 1.96 * np.hypot(samples_spread / np.sqrt(found.samples), seeds_spread / np.sqrt(found.seeds))
    assert share_decided(means, halves, ABOVE) == pytest.approx(0.8, abs=0.04)


def test_a_spread_over_seeds_that_is_chance_vanishes_with_samples():
    estimate = Estimate(0.1, 2.0, 2.0, 100, 1.0, 3, 2)
    by_chance = Estimate(0.1, 2.0, 2.0, 100, 1.0, 3, 2, by_chance=1.0)
    assert needed(estimate, 0.5, ABOVE).seeds and needed(by_chance, 0.5, ABOVE).seeds is None


def test_nothing_decides_on_an_effect_that_is_the_edge():
    assert needed(Estimate(0.3, 1.0, 1.0, 10), 0.0, ABOVE) is None
    (decision,) = decide([(Estimate(0.3, 1.0, 1.0, 10), ABOVE, None)])
    assert isinstance(decision.needed, Needed)  # the observed difference
