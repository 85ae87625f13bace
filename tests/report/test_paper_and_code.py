"""Equation (7) over ε, by hand."""

import numpy as np
import pytest

from analysis import disturbance, published
from core import rope
from report import paper_and_code


def by_hand(inv_freq, factor, epsilon):
    """Equation (7) as it is printed, with histograms counted by NumPy: 10⁻³ nat of each pair."""
    histograms = []
    for frequencies, length in (
        (inv_freq, round(4096 * factor)),
        (published.GEOMETRY.inv_freq, 4096),
    ):
        angles = np.arange(length) * frequencies[:, None] % (2 * np.pi)
        counts = [np.histogram(pair, bins=360, range=(0, 2 * np.pi))[0] for pair in angles]
        histograms.append(np.array(counts) / length)
    longer, pretrained = histograms
    return 1e3 * (longer * np.log((longer + epsilon) / (pretrained + epsilon))).sum(1)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-8])
def test_equation_7_at_8k_by_hand(epsilon):
    rows = disturbance.recomputed(paper_and_code.equation(epsilon))
    ours = {setting.method: value for setting, _, value in rows if setting.factor == 2}
    unscaled = published.GEOMETRY.inv_freq
    interpolated = by_hand(unscaled / 2, 2, epsilon)
    yarn = by_hand(rope.scale(published.GEOMETRY, "yarn", 2).inv_freq, 2, epsilon)
    least = np.minimum(interpolated, by_hand(unscaled, 2, epsilon))
    expected = {"pi": interpolated.mean(), "yarn": yarn.mean(), "dprope": least.mean()}
    assert ours == pytest.approx(expected)
