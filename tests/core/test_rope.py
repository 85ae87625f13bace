"""Looking a method up and calling it: what holds of every method, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import rope
from core.errors import InputError
from core.rope import scale
from tests.core.geometries import LLAMA2, factors, geometries, official

READY = {name for name, method in rope.METHODS.items() if method.ready}
TEMPERED = {name for name in READY if "attention_factor" in rope.method_options(name)}


@settings(max_examples=6)
@given(geometries, factors, st.floats(0.1, 10))
def test_an_attention_factor_changes_nothing_else(geometry, factor, given_factor):
    parameters = {"factor": factor, "original_max_position_embeddings": geometry.context_length}
    _, official_factor = official(geometry, "yarn", **parameters, attention_factor=given_factor)
    for method in TEMPERED:
        plain, ours = scale(geometry, method, factor), scale(geometry, method, factor, attention_factor=given_factor)
        assert ours.attention_factor == official_factor
        assert (ours.inv_freq == plain.inv_freq).all() and (ours.interpolated == plain.interpolated).all()


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf])
def test_an_attention_factor_is_positive(bad):
    for method in TEMPERED:
        with pytest.raises(InputError, match="attention.factor"):
            scale(LLAMA2, method, 2, attention_factor=bad)


@settings(max_examples=10)
@given(geometries, factors)
def test_every_method_stays_between_extrapolation_and_interpolation(geometry, factor):
    # One divides the last pairs by more than s, two stop them, one rounds each wavelength.
    for method in READY - {"ntk-critical", "cope", "hardclip", "yarn-resonance"}:
        scaling = scale(geometry, method, factor)
        assert (scaling.inv_freq <= geometry.inv_freq * (1 + 1e-12)).all()
        assert (scaling.inv_freq >= geometry.inv_freq / factor * (1 - 1e-12)).all()
        assert np.isclose(scaling.inv_freq, geometry.inv_freq / factor)[scaling.interpolated].all()
