"""Decisions against closed testing, and against Student's and normal intervals."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from analysis.hypothesis_tests import (
    ABOVE,
    BELOW,
    CONTRADICTED,
    REPRODUCED,
    UNDECIDED,
    Estimate,
    Region,
    decide,
    holm,
    within,
)
from analysis.scores import Score, over_texts

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


def test_a_bootstrap_interval_gives_back_itself():
    estimate = Estimate.of(Score(2.0, 1.0, 4.0, 30))
    found = estimate.interval()
    assert (found.low, found.high) == pytest.approx((1.0, 4.0))
    assert ABOVE.p(estimate) == pytest.approx(2 * stats.norm.sf(2 * 1.959964))


def test_a_number_without_an_interval_decides_nothing():
    for estimate in (Estimate(1.0), Estimate.of(Score(-1.0, n=3, texts=(-2.0, -1.0, 0.0)))):
        (decision,) = decide([(estimate, ABOVE, None)])
        assert decision.verdict == UNDECIDED and decision.p == 1 and decision.interval.low is None


def test_students_interval_over_texts_gives_back_itself_at_every_level():
    gaps = RNG.normal(1, 1, 8)
    (decision,) = decide([(Estimate.of(over_texts([gaps])), ABOVE, None)])
    assert decision.p == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    wider = decision.estimate.interval(0.01)
    assert (wider.low, wider.high) == pytest.approx(stats.t.interval(0.99, 7, gaps.mean(), stats.sem(gaps)))
