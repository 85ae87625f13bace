"""The paper's methods against transformers' own and the paper's equations, and what holds of every
method."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings

from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance
from core.errors import InputError
from core.rope import BASELINE, PROPOSED, TIME_REFERENCE, RopeGeometry, scale
from tests.core.geometries import LLAMA2, factors, geometries, official

SMALL = RopeGeometry(80, 500.0, 512)
READY = {name for name, method in rope.METHODS.items() if method.ready}
TEMPERED = {name for name in READY if "attention_factor" in rope.method_options(name)}


@settings(max_examples=10)
@given(geometries, factors)
def test_pi_and_yarn_are_transformers_own(geometry, factor):
    length = {"original_max_position_embeddings": geometry.context_length}
    for method, kind, options in ((TIME_REFERENCE, "linear", {}), (BASELINE, "yarn", length)):
        inv_freq, attention_factor = official(geometry, kind, factor=factor, **options)
        ours = scale(geometry, method, factor)
        assert ours.inv_freq == pytest.approx(inv_freq, rel=1e-5)
        assert ours.attention_factor == pytest.approx(attention_factor)


def test_the_papers_printed_ramp_is_linear_in_rotations():
    ours = scale(LLAMA2, BASELINE, 2, ramp="rotations").inv_freq
    turns = 4096 * LLAMA2.inv_freq / (2 * np.pi)
    kept = np.clip((turns - 1) / 31, 0, 1)  # equation 4
    assert ours == pytest.approx((1 - kept) * LLAMA2.inv_freq / 2 + kept * LLAMA2.inv_freq)
    before = angle_distribution(LLAMA2.inv_freq, 4096)
    average = disturbance(angle_distribution(ours, 8192), before).mean()
    assert 1e3 * average == pytest.approx(23.3, abs=0.05)


def test_dprope_options_reach_the_selection():
    assert scale(LLAMA2, PROPOSED, 2, n_hat=80).interpolated.sum() == 40
    assert not scale(LLAMA2, PROPOSED, 2, threshold=10.0).interpolated.any()
    assert scale(LLAMA2, PROPOSED, 2, convention="equation").interpolated.sum() == 46
    coarse = scale(LLAMA2, PROPOSED, 2, intervals=90).interpolated
    assert (coarse != scale(LLAMA2, PROPOSED, 2).interpolated).any()


def with_frequencies(values, interpolated=40):
    return lambda geometry, factor: rope.RopeScaling(
        np.array(values), 1.0, np.ones(interpolated, dtype=bool)
    )


def with_names(geometry, factor, *, width: Literal["a", "b"] = "a"): ...


def with_list(geometry, factor, *, width: list[float] | None = None): ...


def with_path(geometry, factor, *, width: Path = Path()): ...


def with_unknown(geometry, factor, *, width: "Nowhere" = None): ...  # noqa: F821


def with_whole_level(geometry, factor, *, level: int = 1): ...


@pytest.mark.parametrize(
    "function, says",
    [
        (with_frequencies([0.5] * 39), "each of the 40 pairs"),
        (with_frequencies([0.5] * 40, interpolated=39), "each of the 40 pairs"),
        (with_frequencies([0.5] * 39 + [np.nan]), "finite"),
        (with_frequencies([0.5] * 39 + [np.inf]), "finite"),
        (with_frequencies([0.5] * 39 + [-1e-3]), "at least 0"),
        (lambda geometry, factor: geometry.inv_freq, "must return a RopeScaling"),
        (lambda geometry, factor, width=16: None, "option width"),
        (lambda geometry, factor, *, width=16: None, "option width"),
        (with_names, "option width .* give int"),
        (with_list, "option width .* give int"),
        (with_path, "option width .* give int"),
        (with_unknown, "cannot be read"),
        (with_whole_level, "another type than that of 'dprope-significant'"),
    ],
)
def test_a_function_that_is_no_method_is_refused(monkeypatch, function, says):
    monkeypatch.setitem(rope.METHODS, "mine", None)  # which takes it away afterwards
    del rope.METHODS["mine"]
    with pytest.raises(InputError, match=says):
        rope.register("mine")(function)
        scale(SMALL, "mine", 2)


def test_no_method_takes_the_name_of_another():
    before = dict(rope.METHODS)
    with pytest.raises(InputError, match="there is a method 'yarn' already"):
        rope.register("yarn")(with_frequencies([0.5] * 40))
    assert before == rope.METHODS


@pytest.mark.parametrize("method", sorted(TEMPERED))
def test_an_attention_factor_is_positive_and_changes_nothing_else(method):
    plain = scale(SMALL, method, 2)
    ours = scale(SMALL, method, 2, attention_factor=1.3)
    assert ours.attention_factor == 1.3
    assert ours.stock is None
    assert (ours.inv_freq == plain.inv_freq).all()
    assert (ours.interpolated == plain.interpolated).all()
    for bad in (0, -1, np.nan, np.inf, 1e308, 1e-308):
        with pytest.raises(InputError, match="attention.factor"):
            scale(SMALL, method, 2, attention_factor=bad)


# One divides the last pairs by more than s, two stop them, one rounds each wavelength.
@pytest.mark.parametrize(
    "method", sorted(READY - {"ntk-critical", "cope", "hardclip", "yarn-resonance"})
)
def test_every_method_stays_between_extrapolation_and_interpolation(method):
    for factor in (1.5, 8):
        scaling = scale(SMALL, method, factor)
        assert (scaling.inv_freq <= SMALL.inv_freq * (1 + 1e-12)).all()
        assert (scaling.inv_freq >= SMALL.inv_freq / factor * (1 - 1e-12)).all()
        assert np.isclose(scaling.inv_freq, SMALL.inv_freq / factor)[scaling.interpolated].all()
