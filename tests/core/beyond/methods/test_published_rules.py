"""Rules that others published, against transformers, their definitions written out, and hand-worked
cases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from core import rope
from core.errors import InputError
from core.rope import scale
from tests.core.geometries import LLAMA2, SMOLLM2, factors, geometries, official

ANY = pytest.mark.parametrize("geometry", [LLAMA2, SMOLLM2])


@settings(max_examples=10)
@given(geometries, factors)
def test_ntk_and_llama3_are_transformers_own(geometry, factor):
    """NTK-aware scaling is dynamic NTK at the final length."""
    longer = int(geometry.context_length * factor)
    inv_freq, _ = official(geometry, "dynamic", seq_len=longer, factor=1.0)
    assert scale(geometry, "ntk", factor).inv_freq == pytest.approx(inv_freq, rel=1e-5)
    llama3 = scale(geometry, "llama3", factor)
    inv_freq, attention_factor = official(geometry, **llama3.stock)
    assert llama3.inv_freq == pytest.approx(inv_freq, rel=1e-5)
    assert llama3.attention_factor == attention_factor == 1


@ANY
def test_mrrope_divides_step_by_step(geometry):
    """Each pair between YaRN's limits adds one equal step to log λ, or one that is larger than the
    step before."""
    yarn = scale(geometry, "yarn", 4)
    changed = np.flatnonzero(~np.isclose(yarn.inv_freq, geometry.inv_freq))
    low = changed[0] - 1
    high = np.flatnonzero(yarn.interpolated)[0]
    steps = np.zeros(geometry.pairs)
    steps[low + 1 : high + 1] = np.arange(1, high - low + 1)
    for name, added in (("mrrope-uni", steps > 0), ("mrrope-pro", steps)):
        scaling = scale(geometry, name, 4)
        exponents = np.cumsum(added) / added.sum()
        by = geometry.inv_freq / scaling.inv_freq
        np.testing.assert_allclose(by, 4**exponents, rtol=1e-12)
        assert scaling.attention_factor == yarn.attention_factor
        assert (scaling.interpolated == yarn.interpolated).all()


@ANY
def test_the_critical_base_keeps_the_pair_that_turns_once(geometry):
    """At which (real) pair index the wavelength is L before, and L' after."""
    theta = scale(geometry, "ntk-critical", 2).inv_freq
    pairs = np.arange(geometry.pairs)
    before = np.interp(np.log(geometry.context_length), np.log(geometry.wavelength), pairs)
    after = np.interp(np.log(2 * geometry.context_length), np.log(2 * np.pi / theta), pairs)
    assert before == pytest.approx(after)


def test_longrope2_divides_by_s_from_the_critical_pair_on():
    by = LLAMA2.inv_freq / scale(LLAMA2, "longrope2", 4).inv_freq
    assert LLAMA2.wavelength[45] < 4096 < LLAMA2.wavelength[46]
    np.testing.assert_allclose(by[46:], 4)
    assert by[0] == 1
    assert by[23] == pytest.approx(2)  # halfway: √4


@ANY
def test_under_resonance_angles_repeat(geometry):
    scaling = scale(geometry, "yarn-resonance", 2)
    yarn = scale(geometry, "yarn", 2)
    periods = np.round(2 * np.pi / scaling.inv_freq)
    np.testing.assert_allclose(np.cos(periods * scaling.inv_freq), 1)
    np.testing.assert_allclose(2 * np.pi / scaling.inv_freq, 2 * np.pi / yarn.inv_freq, atol=0.5)
    assert scaling.attention_factor == yarn.attention_factor


def test_a_given_base():
    """500,000^(−1/2) is 1/707.1 in the middle pair, at every s."""
    for factor in (2, 8):
        inv_freq = scale(LLAMA2, "abf", factor, base=500_000).inv_freq
        assert 1 / inv_freq[32] == pytest.approx(707.1067811865)
    assert str(rope.changed_options("abf", {"base": 500_000})) == "{'base': 500000.0}"
    with pytest.raises(InputError, match="the raised base is 10000"):
        scale(LLAMA2, "abf", 2, base=10_000)


@pytest.mark.parametrize(
    "geometry, name, options, count",
    [
        (LLAMA2, "cope", {}, 20),
        # the example of mlx-lm's pull request 1387
        (LLAMA2, "hardclip", {"clipped": 3}, 3),
        (LLAMA2, "hardclip", {"clipped": 64}, 64),  # DroPE
    ],
)
def test_the_slowest_pairs_are_clipped_as_the_authors_do(geometry, name, options, count):
    """Their constant is 20 of the 64 pairs of Llama 3 8B; the rest of their formula is a sum over
    single pairs here."""
    scaling = scale(geometry, name, 2, **options)
    expected = geometry.inv_freq
    for index in range(count):
        share = 0
        if name == "cope":
            share = math.cos(math.pi / 2 * index / (count - 1)) ** 2  # (1 + cos x)/2
        expected[geometry.pairs - count + index] *= share
    np.testing.assert_allclose(scaling.inv_freq, expected, rtol=1e-9, atol=1e-18)
    assert scaling.attention_factor == 1
    assert not scaling.interpolated.any()
