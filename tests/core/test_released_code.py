"""The float32 histogram against a literal PyTorch loop, and the pairs that it selects."""

import numpy as np
import pytest
import torch

from core.disturbance import disturbance, select_interpolated
from core.released_code import COUNT_OFFSET, angle_distribution_float32, inv_freq_float32
from tests.core.geometries import LLAMA2, SMOLLM2


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
    ours = angle_distribution_float32(inv_freq_float32(LLAMA2)[list(pairs)], length, intervals)
    assert np.array_equal(ours, (expected / length).numpy())
    assert ours.min() == COUNT_OFFSET / np.float32(length)


def by_released_code(geometry, divisor, factor):
    """D of each pair whose frequencies are divided, at factor·L."""
    inv_freq = inv_freq_float32(geometry)
    before = angle_distribution_float32(inv_freq, geometry.context_length)
    after = angle_distribution_float32(
        inv_freq / np.float32(divisor), factor * geometry.context_length
    )
    return disturbance(after, before, "released", epsilon=0)


@pytest.mark.parametrize(
    ("geometry", "factor", "n_hat"),
    [(LLAMA2, 2, 94), (LLAMA2, 4, 84), (SMOLLM2, 2, 48), (SMOLLM2, 4, 48)],
)
def test_the_selection_is_the_same_on_every_processor(geometry, factor, n_hat):
    """At t = 0 one unit in the last place of a frequency turns a pair: as it did between two kinds
    of processor."""
    interpolation = by_released_code(geometry, factor, factor)
    extrapolation = by_released_code(geometry, 1, factor)
    assert 2 * select_interpolated(interpolation, extrapolation).sum() == n_hat
