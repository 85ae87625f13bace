"""PI against transformers' own."""

import pytest
from hypothesis import given

from core.rope import scale
from tests.core.geometries import factors, geometries, official


@given(geometries, factors)
def test_pi_is_transformers_linear(geometry, factor):
    inv_freq, attention_factor = official(geometry, "linear", factor=factor)
    ours = scale(geometry, "pi", factor)
    assert ours.inv_freq == pytest.approx(inv_freq, rel=1e-6)
    assert ours.attention_factor == attention_factor == 1
