"""Variants of the paper's method: against plain loops, and against what chance gives."""

import numpy as np
import pytest
from scipy.stats import norm

from core.angles import angle_distribution
from core.beyond.methods.dprope_variants import margin_noise
from core.disturbance import disturbance, strategy_disturbance
from core.errors import InputError
from core.geometry import RopeGeometry
from core.rope import scale
from tests.core.geometries import LLAMA2, SMOLLM2

ANY = pytest.mark.parametrize("geometry", [LLAMA2, SMOLLM2])


@ANY
def test_every_pair_takes_the_least_disturbing_candidate(geometry):
    longer = 2 * geometry.context_length
    before = angle_distribution(geometry.inv_freq, geometry.context_length)
    offered = [scale(geometry, name, 2).inv_freq for name in ("original", "pi", "ntk", "yarn")]
    moved = [disturbance(angle_distribution(theta, longer), before) for theta in offered]
    taken = scale(geometry, "dprope-candidates", 2).inv_freq
    for pair, choice in enumerate(np.argmin(moved, axis=0)):
        assert taken[pair] == offered[choice][pair]


@ANY
def test_significant_margins_exceed_their_noise_by_a_normal_test_over_all_pairs(geometry):
    length = geometry.context_length
    scaling = scale(geometry, "dprope-significant", 2, level=0.1)
    interpolation, extrapolation = strategy_disturbance(geometry.inv_freq, length, 2)
    occupied = (angle_distribution(geometry.inv_freq, length) > 0).sum(axis=1)
    noise = margin_noise(length, 2 * length, occupied)
    chance = norm.sf((extrapolation - interpolation) / noise)
    assert (scaling.interpolated == (chance < 0.1 / geometry.pairs)).all()
    assert scaling.interpolated[geometry.wavelength > length * 1.01].all()


@pytest.mark.parametrize("level", [0, 1, 5e-324])  # the least divides to 0
def test_a_level_is_a_probability_for_each_pair(level):
    with pytest.raises(InputError, match="between 0 and 1"):
        scale(RopeGeometry(64, 1e4, 2048), "dprope-significant", 2, level=level)


@pytest.mark.parametrize("length, longer", [(2000, 8000), (4000, 6000)])
def test_margin_noise_is_what_drawing_angles_at_random_gives(length, longer):
    """Both strategies' histograms drawn thousands of times from one uneven distribution."""
    rng = np.random.default_rng(0)
    true = rng.uniform(0.5, 1.5, 40)
    true /= true.sum()
    draws = 2000
    shared = rng.multinomial(length, true, draws)
    interpolated = shared + rng.multinomial(longer - length, true, draws)
    extrapolated = shared + rng.multinomial(longer - length, true, draws)
    before = shared / length
    for convention in ("released", "equation"):
        margin = disturbance(extrapolated / longer, before, convention)
        margin -= disturbance(interpolated / longer, before, convention)
        assert abs(margin.mean()) < 4 * margin.std() / draws**0.5
        assert margin.std() == pytest.approx(float(margin_noise(length, longer, 40)), rel=0.08)


@ANY
def test_covered_interpolates_what_has_not_turned_once(geometry):
    scaling = scale(geometry, "dprope-covered", 2)
    once = geometry.inv_freq * geometry.context_length >= 2 * np.pi
    expected = np.where(once, geometry.inv_freq, geometry.inv_freq / 2)
    np.testing.assert_array_equal(scaling.inv_freq, expected)
    assert scaling.attention_factor == scale(geometry, "yarn", 2).attention_factor
    shorter = scale(geometry, "dprope-covered", 2, covered_length=geometry.context_length // 4)
    four_times = geometry.inv_freq * geometry.context_length >= 4 * 2 * np.pi
    assert (shorter.interpolated == ~four_times).all()
