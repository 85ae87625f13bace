"""Exact counting against a brute force in 400-bit arithmetic, position by position."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import floor, mp, mpf, pi

from core.angles import angle_counts


def brute_force(theta: float, length: int, intervals: int) -> list[int]:
    counts = [0] * intervals
    with mp.workprec(400):
        turns = intervals * mpf(theta) / (2 * pi)
        for m in range(length):
            counts[int(floor(m * turns)) % intervals] += 1
    return counts


# Frequencies that put many positions within rounding of an interval's boundary.
near_boundaries = st.builds(
    lambda j, b: 2 * math.pi * j / b, st.integers(1, 40), st.sampled_from([2, 7, 90, 360])
)
frequencies = st.one_of(st.floats(0, 7), st.floats(-9, 0).map(lambda x: 10**x), near_boundaries)


@settings(max_examples=100, deadline=None)
@given(frequencies, st.integers(1, 300), st.sampled_from([2, 3, 7, 90, 360, 720]))
@example(0.0, 5, 360)
@example(1.0, 1, 2)
@example(2 * math.pi, 50, 360)  # the float just below 2π: every position sits at a boundary
@example(math.nextafter(2 * math.pi, 7), 50, 360)  # and just above
def test_counts_are_those_of_a_brute_force(theta, length, intervals):
    assert angle_counts([theta], length, intervals)[0].tolist() == brute_force(
        theta, length, intervals
    )


@pytest.mark.parametrize("length", [10_000_000, 2**60])
def test_long_contexts_add_up_contain_their_halves_and_spread_evenly(length):
    inv_freq = np.array([1.0, 0.1234567, 3e-4])
    counts = angle_counts(inv_freq, length, 360)
    assert counts.sum(axis=1).tolist() == [length] * 3
    # Doubling θ and halving the length visits the even positions of the original.
    even = angle_counts(2 * inv_freq, length // 2, 360)
    assert (even <= counts).all()
    # Equidistribution: an irrational rotation's star discrepancy at this length is far below 1e-4.
    assert np.abs(counts[0] / length - 1 / 360).max() < 1e-6
