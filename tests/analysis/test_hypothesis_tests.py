"""Verdicts against closed testing, and against Student's and normal intervals."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from analysis.differences import (
    ABOVE,
    BELOW,
    CONTRADICTED,
    REPRODUCED,
    UNDECIDED,
    Region,
    holm,
)
from analysis.scores import Score, over_texts, seed_errors

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
        mean = RNG.normal(0, 3)
        freedom = RNG.choice([2, 7, np.inf])
        below, above = RNG.uniform(0.1, 1, 2)
        score = Score(mean).with_errors(below, above, freedom)
        times = stats.t.ppf(1 - level / 2, freedom)
        low, high = mean - times * below, mean + times * above
        edges = [edge for edge in (region.low, region.high) if low <= edge <= high]
        inside = region.low < low and high < region.high
        assert region.verdict(score, level) == (
            UNDECIDED if edges else REPRODUCED if inside else CONTRADICTED
        )


@pytest.mark.parametrize("gaps", [[1.0, 2.5, 2.0], RNG.normal(1, 1, 8)])
@pytest.mark.parametrize("of", ["texts", "seeds"])
def test_students_test_of_one_sample_is_scipys(gaps, of):
    by_seed = np.array(gaps)
    if of == "seeds":
        score = Score(by_seed.mean()).with_further(seed_errors([by_seed]))
    else:
        score = over_texts([gaps])
    if of == "texts" and len(gaps) < 5:
        assert ABOVE.p(score) == 1
    else:
        test = stats.ttest_1samp(gaps, 0)
        assert ABOVE.p(score) == pytest.approx(test.pvalue)
        assert (score.low, score.high) == pytest.approx(tuple(test.confidence_interval()))


@pytest.mark.parametrize("score", [Score(1.0), Score(-1.0, n=3, texts=(-2.0, -1.0, 0.0))])
def test_a_number_without_an_interval_decides_nothing(score):
    assert ABOVE.verdict(score) == UNDECIDED
    assert ABOVE.p(score) == 1
    assert Region(-1.0, 1.0).excess(score) == 0


@pytest.mark.parametrize(("low", "high"), [(-0.3, 0.3), (-0.12, 0.22), (-1.0, 0.9)])
def test_a_margin_is_exceeded_exactly_if_a_difference_of_zero_could_not_hold(low, high):
    """Over means and half-widths: the same interval around zero is tried."""
    region = Region(low, high)
    for half in (0.05, 0.15, 0.25, 0.95, 1.5):
        for mean in (-2.0, 0.0, 0.1):
            excess = region.excess(Score(mean, mean - half, mean + half, 100))
            around_zero = region.verdict(Score(0.0, -half, half, 100))
            assert (excess > 1) == (around_zero != REPRODUCED)
            assert excess == pytest.approx(half / min(-low, high))
    assert ABOVE.excess(Score(0.0, -9.0, 9.0)) == 0
