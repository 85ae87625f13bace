"""Variants of the paper's method: against plain loops, and against what chance gives."""

import numpy as np
import pytest

from core import rope
from core.angles import angle_distribution
from core.beyond.methods.dprope_variants import margin_noise
from core.disturbance import disturbance, strategy_disturbance
from core.errors import InputError
from core.rope import scale
from tests.core.geometries import LLAMA2, SMOLLM2

ANY = pytest.mark.parametrize("geometry", [LLAMA2, SMOLLM2])


@ANY
def test_every_pair_takes_the_least_disturbing_candidate(geometry):
    candidates = ("original", "pi", "ntk", "yarn")
    before = angle_distribution(geometry.inv_freq, geometry.context_length)
    taken = scale(geometry, "dprope-candidates", 2).inv_freq
    offered = [scale(geometry, name, 2).inv_freq for name in candidates]
    for pair in range(geometry.pairs):
        moved = [
            disturbance(angle_distribution(own[pair : pair + 1], 2 * geometry.context_length), before[pair : pair + 1])[
                0
            ]
            for own in offered
        ]
        assert taken[pair] == offered[int(np.argmin(moved))][pair]
    two = scale(geometry, "dprope-candidates", 2, candidates=["original", "pi"])
    assert (two.inv_freq == scale(geometry, rope.PROPOSED, 2).inv_freq).all()


@pytest.mark.parametrize("factor", [2])
def test_significant_margins_are_those_that_random_counts_do_not_reach(factor):
    """Against 4,000 pairs of histograms whose angles are drawn at random from the uniform distribution."""
    chosen = scale(LLAMA2, "dprope-significant", factor).interpolated
    margin = np.subtract(*strategy_disturbance(LLAMA2.inv_freq, 4096, factor)[::-1])
    assert chosen[LLAMA2.wavelength > 4096 * 1.01].all() and (margin[chosen] > margin[~chosen].max()).all()

    rng = np.random.default_rng(0)
    uniform, longer = np.full(360, 1 / 360), 4096 * factor
    shared = rng.multinomial(4096, uniform, 4000)
    by_chance = np.subtract(
        *(disturbance((shared + rng.multinomial(longer - 4096, uniform, 4000)) / longer, shared / 4096) for _ in "EI")
    )
    assert np.mean(by_chance > margin[chosen].min()) < 0.05 / 64 * 3
    assert np.mean(by_chance > margin[~chosen].max()) > 0.05 / 64 / 10
    assert (scale(LLAMA2, "dprope-significant", factor, convention="equation").interpolated == chosen).all()
    assert scale(LLAMA2, "dprope-significant", factor, level=0.5).interpolated[chosen].all()


@pytest.mark.parametrize(("length", "longer"), [(2000, 8000), (4000, 6000)])
def test_margin_noise_is_what_drawing_angles_at_random_gives(length, longer):
    """Both strategies' histograms drawn thousands of times from one uneven distribution."""
    rng = np.random.default_rng(0)
    true = rng.uniform(0.5, 1.5, 40)
    true /= true.sum()
    draws = 6000
    shared = rng.multinomial(length, true, draws)
    interpolated, extrapolated = (shared + rng.multinomial(longer - length, true, draws) for _ in range(2))
    for convention in ("released", "equation"):
        margin = np.subtract(
            *(disturbance(x / longer, shared / length, convention) for x in (extrapolated, interpolated))
        )
        assert abs(margin.mean()) < 4 * margin.std() / draws**0.5
        assert margin.std() == pytest.approx(float(margin_noise(length, longer, 40)), rel=0.06)


@ANY
def test_covered_interpolates_what_has_not_turned_once(geometry):
    found = scale(geometry, "dprope-covered", 2)
    once = geometry.inv_freq * geometry.context_length >= 2 * np.pi
    np.testing.assert_array_equal(found.inv_freq, np.where(once, geometry.inv_freq, geometry.inv_freq / 2))
    assert found.attention_factor == scale(geometry, "yarn", 2).attention_factor
    shorter = scale(geometry, "dprope-covered", 2, covered_length=geometry.context_length // 4)
    assert (shorter.interpolated >= found.interpolated).all() and shorter.interpolated.sum() > found.interpolated.sum()


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        ("dprope-candidates", {"candidates": ("clex",)}, "more than its name"),
        ("dprope-significant", {"level": 0}, "probability between 0 and 1"),
        ("dprope-covered", {"covered_length": 4097}, "covered length"),
    ],
)
def test_bad_options_are_refused(method, options, says):
    with pytest.raises(InputError, match=says):
        scale(LLAMA2, method, 2, **options)
