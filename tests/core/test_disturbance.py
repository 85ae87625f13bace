"""KL disturbance against SciPy and hand-worked cases; the paper's pairs; selection; the released
code's histogram against a literal PyTorch loop."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from core.disturbance import (
    COUNT_OFFSET,
    angle_distribution_float32,
    disturbance,
    inv_freq_float32,
    select_interpolated,
    strategy_disturbance,
)
from tests.core.geometries import LLAMA2

rows_with_zeros = (
    arrays(np.float64, (3, 8), elements=st.floats(0.01, 1) | st.just(0.0), fill=st.nothing())
    .filter(lambda x: x.any(axis=1).all())
    .map(lambda x: x / x.sum(axis=1, keepdims=True))
)
# whole tenths, of which some are equal
margins = arrays(np.int64, 12, elements=st.integers(-10, 10)).map(lambda x: x / 10)


@settings(max_examples=20)
@given(rows_with_zeros, rows_with_zeros)
def test_agrees_with_scipy(extended, pretrained):
    released = disturbance(extended, pretrained, "released", epsilon=0)
    equation = disturbance(extended, pretrained, "equation", epsilon=0)
    assert released == pytest.approx(entropy(pretrained, extended, axis=1), abs=1e-12)
    assert equation == pytest.approx(entropy(extended, pretrained, axis=1), abs=1e-12)


def test_hand_worked_case():
    pretrained = [[0.5, 0.5, 0.0]]
    extended = [[0.25, 0.25, 0.5]]
    # KL(P_L || P_L') = 2 · 0.5 · ln 2; the unseen interval costs nothing in this direction.
    assert disturbance(extended, pretrained, "released") == pytest.approx([np.log(2)], abs=1e-6)
    # KL(P_L' || P_L): the unseen interval costs 0.5 · ln(0.5 / ε), so it is ε that sets the value.
    for epsilon in (1e-3, 1e-8):
        seen = 0.5 * np.log((0.25 + epsilon) / (0.5 + epsilon))
        unseen = 0.5 * np.log((0.5 + epsilon) / epsilon)
        found = disturbance(extended, pretrained, "equation", epsilon)
        assert found == pytest.approx([seen + unseen])


@pytest.mark.parametrize("factor, n_hat, average", [(2, 92, 6.71e-3), (4, 84, 22.95e-3)])
def test_selection_at_t_0(factor, n_hat, average):
    interpolation, extrapolation = strategy_disturbance(LLAMA2.inv_freq, 4096, factor)
    chosen = select_interpolated(interpolation, extrapolation)
    assert 2 * chosen.sum() == n_hat
    assert np.where(chosen, interpolation, extrapolation).mean() == pytest.approx(average, abs=5e-6)
    assert chosen[LLAMA2.wavelength > 4096].all()


@settings(max_examples=40)
@given(margins, st.integers(0, 12), st.floats(-1, 1))
def test_n_hat_takes_the_largest_margins_and_a_threshold_is_equation_8(
    extrapolation, pairs, threshold
):
    chosen = select_interpolated(np.zeros(12), extrapolation, n_hat=2 * pairs)
    assert chosen.sum() == pairs
    if 0 < pairs < 12:
        least = extrapolation[chosen].min()
        assert least >= extrapolation[~chosen].max()
        tied = chosen[extrapolation == least].tolist()
        assert tied == sorted(tied)  # the lower frequencies among equals
    chosen = select_interpolated(np.zeros(12), extrapolation, threshold=threshold)
    assert (chosen == (extrapolation > threshold)).all()


def test_histogram_is_that_of_a_loop_over_tensors():
    pairs = (0, 22, 63)
    length = 300
    intervals = 360
    inv_freq = 1 / (10000 ** (torch.arange(0, 128, 2).float() / 128))
    expected = torch.full((len(pairs), intervals), torch.finfo(torch.float16).tiny)
    for row, pair in enumerate(pairs):
        for m in range(length):
            angle = (inv_freq[pair] * torch.tensor(m)) % (2 * torch.pi)
            expected[row][int(torch.floor((intervals / (2 * torch.pi)) * angle))] += 1
    ours = angle_distribution_float32(inv_freq_float32(LLAMA2)[list(pairs)], length)
    assert np.array_equal(ours, (expected / length).numpy())
    assert ours.min() == COUNT_OFFSET / np.float32(length)
