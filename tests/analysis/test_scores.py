"""Seeds, differences and sign tests against SciPy and against counting."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from analysis.scores import Score, difference, over_seeds, sign_test


def scores(*means, width=1.0):
    return [{"a": Score(mean, mean - width, mean + width, 5)} for mean in means]


def test_seeds_become_their_mean_with_an_interval_for_seeds_and_samples():
    means = [10.0, 12.0, 17.0]
    found = over_seeds(scores(*means))["a"]
    _, seeds = stats.t.interval(0.95, 2, scale=stats.sem(means))
    half = np.hypot(seeds, 1.0)
    assert (found.mean, found.low, found.high, found.n) == pytest.approx((13, 13 - half, 13 + half, 3))


def test_seeds_that_answer_alike_are_no_more_certain_than_their_samples():
    assert over_seeds(scores(3, 3, 3, width=5))["a"] == Score(3, 0, 8, 3)  # no score is negative


def test_differences_are_paired_by_the_seeds_that_both_have():
    ours = {seed: Score(mean, mean - 9, mean + 9) for seed, mean in ((0, 10.0), (1, 12.0), (2, 17.0), (3, 99.0))}
    other = {seed: Score(mean, mean - 9, mean + 9) for seed, mean in ((0, 9.0), (1, 10.0), (2, 14.0))}
    found = difference(ours, other)
    low, high = stats.t.interval(0.95, 2, loc=2, scale=stats.sem([1, 2, 3]))
    assert (found.mean, found.low, found.high) == pytest.approx((2, low, high))


def test_without_seeds_two_intervals_combine():
    found = difference({None: Score(10, 7, 12)}, {None: Score(4, 3, 8)})
    assert (found.mean, found.low, found.high) == pytest.approx((6, 6 - 5, 6 + 5**0.5))  # √(3² + 4²), √(2² + 1²)


def test_a_sign_test_counts_every_way_that_coins_can_fall():
    ours, others = np.array([1, 1, 0, 1, 1, 0.5, 1]), np.array([0, 0, 1, 0, 0, 0.5, 1])
    found = sign_test(ours, others)
    assert (found.better, found.worse) == (4, 1)
    falls = [sum(fall) for fall in product((0, 1), repeat=5)]
    assert found.p == pytest.approx(np.mean([abs(heads - 2.5) >= 1.5 for heads in falls]))
    assert sign_test(ours, ours).p == 1.0
