"""Verdicts against closed testing, and against Student's and normal intervals."""

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
    holm,
)
from analysis.scores import Score, over_texts

RNG = np.random.default_rng(7)


def closed_testing(p):
    """Holm is the closure of Bonferroni's test: the most that any subset with a hypothesis makes of
    its least p."""
    sets = [s for size in range(1, len(p) + 1) for s in combinations(range(len(p)), size)]
    return np.array(
        [max(len(s) * min(p[j] for j in s) for s in sets if i in s) for i in range(len(p))]
    )


@pytest.mark.parametrize("n", [1, 2, 5])
def test_holm_is_closed_testing(n):
    for _ in range(50):
        p = RNG.uniform(0, 0.08, n)
        assert (p <= holm(p)).tolist() == (closed_testing(p) <= 0.05).tolist()


@pytest.mark.parametrize("region", [ABOVE, BELOW, Region(-1.0, 1.0), Region(high=0.5)])
def test_a_verdict_is_what_the_interval_says(region):
    for level in RNG.uniform(0.001, 0.1, 200):
        mean, below, above, spread = (
            RNG.normal(0, 3),
            *RNG.uniform(0.1, 1, 2),
            RNG.choice([0.0, 0.5]),
        )
        estimate = Estimate(mean, below, above, 9, spread, 3, 2)
        interval = estimate.interval(level)
        edges = [
            edge for edge in (region.low, region.high) if interval.low <= edge <= interval.high
        ]
        inside = region.low < interval.low and interval.high < region.high
        assert region.verdict(estimate, level) == (
            UNDECIDED if edges else REPRODUCED if inside else CONTRADICTED
        )


def same(interval, low, high):
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_one_seed_after_another_gives_students_test():
    gaps = np.array([1.0, 2.5, 2.0])
    estimate = Estimate(gaps.mean(), over_seeds=stats.sem(gaps), seeds=3, freedom=2)
    same(estimate.interval(), *stats.t.interval(0.95, 2, loc=gaps.mean(), scale=stats.sem(gaps)))
    assert ABOVE.p(estimate) == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)


def test_students_interval_over_texts_gives_back_itself_at_every_level():
    gaps = RNG.normal(1, 1, 8)
    estimate = Estimate.of(over_texts([gaps]))
    assert ABOVE.p(estimate) == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    same(estimate.interval(0.01), *stats.t.interval(0.99, 7, gaps.mean(), stats.sem(gaps)))


@pytest.mark.parametrize(
    "estimate", [Estimate(1.0), Estimate.of(Score(-1.0, n=3, texts=(-2.0, -1.0, 0.0)))]
)
def test_a_number_without_an_interval_decides_nothing(estimate):
    assert (
        ABOVE.verdict(estimate) == UNDECIDED
        and ABOVE.p(estimate) == 1
        and estimate.interval().low is None
    )
