"""Intervals against scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from eval.intervals import accuracy_interval, mean_interval


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_of_zeros_and_ones_it_is_scipys(found):
    interval = accuracy_interval(np.array(found))
    scipys = binomtest(sum(found), len(found)).proportion_ci(method="wilson")
    assert (interval["low"], interval["high"]) == pytest.approx(
        (scipys.low, scipys.high), abs=1e-12
    )
    assert (interval["mean"], interval["n"]) == (pytest.approx(np.mean(found)), len(found))
    assert 0 <= interval["low"] <= interval["mean"] <= interval["high"] <= 1


@pytest.mark.parametrize("n", [2, 17, 501])
def test_the_bootstrap_is_scipys(n):
    values = np.random.default_rng(n).normal(size=n)
    found = mean_interval(values)
    theirs = bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=0)
    low, high = theirs.confidence_interval
    assert (found["low"], found["high"]) == pytest.approx((low, high), rel=1e-14)
