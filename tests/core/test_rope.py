"""Scaling methods against transformers' own rope functions, hand-worked values and their defining properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance, strategy_disturbance
from core.errors import InputError
from core.rope import RopeGeometry, RopeScaling, scale

LLAMA2 = RopeGeometry(128, 10000.0, 4096)
geometries = st.builds(
    RopeGeometry,
    head_dim=st.sampled_from([32, 64, 80, 96, 128]),
    base=st.sampled_from([500.0, 10000.0, 1e5, 1e6]),
    context_length=st.sampled_from([512, 2048, 4096, 8192]),
)
factors = st.sampled_from([1.5, 2, 4, 8])


def official(geometry: RopeGeometry, rope_type: str, seq_len=None, **parameters):
    config = LlamaConfig(
        head_dim=geometry.head_dim,
        max_position_embeddings=geometry.context_length,
        rope_parameters={"rope_type": rope_type, "rope_theta": geometry.base, **parameters},
    )
    inv_freq, attention_factor = ROPE_INIT_FUNCTIONS[rope_type](config, seq_len=seq_len)
    return inv_freq.double().numpy(), attention_factor


@given(geometries, factors)
def test_pi_is_transformers_linear(geometry, factor):
    inv_freq, attention_factor = official(geometry, "linear", factor=factor)
    ours = scale(geometry, "pi", factor)
    assert ours.inv_freq == pytest.approx(inv_freq, rel=1e-6)
    assert ours.attention_factor == attention_factor == 1


@given(geometries, factors)
def test_yarn_is_transformers_yarn(geometry, factor):
    parameters = {"factor": factor, "original_max_position_embeddings": geometry.context_length}
    inv_freq, attention_factor = official(geometry, "yarn", **parameters)
    ours = scale(geometry, "yarn", factor)
    assert ours.inv_freq == pytest.approx(inv_freq, rel=1e-5)
    assert ours.attention_factor == pytest.approx(attention_factor)


@settings(max_examples=12)
@given(geometries, factors, st.floats(0.1, 10))
def test_an_attention_factor_changes_nothing_else(geometry, factor, given_factor):
    parameters = {"factor": factor, "original_max_position_embeddings": geometry.context_length}
    _, official_factor = official(geometry, "yarn", **parameters, attention_factor=given_factor)
    for method in ("yarn", "dprope", "dprope-significant"):
        plain, ours = scale(geometry, method, factor), scale(geometry, method, factor, attention_factor=given_factor)
        assert ours.attention_factor == official_factor
        assert (ours.inv_freq == plain.inv_freq).all() and (ours.interpolated == plain.interpolated).all()


@pytest.mark.parametrize("bad", [0, -1, np.nan, np.inf])
def test_an_attention_factor_is_positive(bad):
    for method in ("yarn", "dprope", "dprope-significant"):
        with pytest.raises(InputError, match="attention.factor"):
            scale(LLAMA2, method, 2, attention_factor=bad)


@given(geometries, factors)
def test_ntk_is_transformers_dynamic_ntk_at_the_final_length(geometry, factor):
    longer = int(geometry.context_length * factor)
    inv_freq, _ = official(geometry, "dynamic", seq_len=longer, factor=1.0)
    assert scale(geometry, "ntk", factor).inv_freq == pytest.approx(inv_freq, rel=1e-5)


def test_yarn_ramp_of_llama2_runs_from_pair_20_to_46():
    divisor = LLAMA2.inv_freq / scale(LLAMA2, "yarn", 2).inv_freq
    assert divisor[:21] == pytest.approx(np.ones(21))
    assert divisor[46:] == pytest.approx(np.full(18, 2))
    assert (np.diff(divisor[20:47]) > 0).all()


def test_the_papers_printed_ramp_is_linear_in_rotations():
    ours = scale(LLAMA2, "yarn", 2, ramp="rotations").inv_freq
    for i, theta in enumerate(LLAMA2.inv_freq):
        r = 4096 * theta / (2 * np.pi)
        gamma = (r - 1) / 31
        expected = theta / 2 if r < 1 else theta if r > 32 else (1 - gamma) * theta / 2 + gamma * theta  # equation 4
        assert ours[i] == pytest.approx(expected)
    average = disturbance(angle_distribution(ours, 8192), angle_distribution(LLAMA2.inv_freq, 4096)).mean()
    assert 1e3 * average == pytest.approx(23.3, abs=0.05)


def test_ntk_keeps_the_first_pair_and_interpolates_the_last():
    scaling = scale(LLAMA2, "ntk", 4)
    assert scaling.inv_freq[0] == 1
    assert scaling.inv_freq[-1] == pytest.approx(LLAMA2.inv_freq[-1] / 4)


@settings(max_examples=25)
@given(geometries, factors)
def test_every_method_stays_between_extrapolation_and_interpolation(geometry, factor):
    ready = {name for name, method in rope.METHODS.items() if method.ready}
    for method in ready - {"ntk-critical"}:  # which divides the last pairs by more than s
        scaling = scale(geometry, method, factor)
        assert (scaling.inv_freq <= geometry.inv_freq * (1 + 1e-12)).all()
        assert (scaling.inv_freq >= geometry.inv_freq / factor * (1 - 1e-12)).all()
        assert np.isclose(scaling.inv_freq, geometry.inv_freq / factor)[scaling.interpolated].all()


@settings(max_examples=25)
@given(geometries, factors)
def test_dprope_is_never_further_than_pi_or_extrapolation(geometry, factor):
    before = angle_distribution(geometry.inv_freq, geometry.context_length)
    longer = round(geometry.context_length * factor)
    ours = disturbance(angle_distribution(scale(geometry, "dprope", factor).inv_freq, longer), before)
    for alternative in strategy_disturbance(geometry.inv_freq, geometry.context_length, factor):
        assert (ours <= alternative + 1e-12).all()


def test_dprope_options_reach_the_selection():
    assert scale(LLAMA2, "dprope", 2, n_hat=80).interpolated.sum() == 40
    assert not scale(LLAMA2, "dprope", 2, threshold=10.0).interpolated.any()
    equation = scale(LLAMA2, "dprope", 2, convention="equation").interpolated
    coarse = scale(LLAMA2, "dprope", 2, intervals=90).interpolated
    released = scale(LLAMA2, "dprope", 2).interpolated
    assert (released != coarse).any() and equation.sum() == 46


@pytest.mark.parametrize("factor", [2, 4])
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


def test_a_new_method_joins_with_one_function(monkeypatch):
    monkeypatch.setattr(rope, "METHODS", dict(rope.METHODS))

    @rope.register("halve")
    def halve(geometry, factor, *, by=2.0):
        return RopeScaling(geometry.inv_freq / by, 1.0, np.zeros(geometry.pairs, dtype=bool))

    assert scale(LLAMA2, "halve", 3, by=4.0).inv_freq[0] == 0.25
    assert rope.method_options("halve") == {"by": 2.0, "resonance": False}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: scale(LLAMA2, "rope++", 2), "unknown method 'rope\\+\\+'; choose one of original, pi"),
        (lambda: scale(LLAMA2, "pi", 1), "scaling factor is 1"),
        (lambda: scale(LLAMA2, "pi", 0.5), "above 1"),
        (lambda: scale(LLAMA2, "pi", float("nan")), "scaling factor"),
        (lambda: scale(LLAMA2, "pi", 2, n_hat=80), "no option 'n_hat'; it takes resonance"),
        (lambda: scale(LLAMA2, "dprope", 2, n_hat=81), "even number from 0 to 128"),
        (lambda: scale(LLAMA2, "dprope", 2, intervals=1), "b ≥ 2"),
        (lambda: scale(LLAMA2, "dprope", 2, convention="other"), "released, equation"),
        (lambda: scale(LLAMA2, "dprope-significant", 2, level=0), "probability between 0 and 1"),
        (lambda: scale(LLAMA2, "yarn", 2, ramp="cubic"), "index or rotations"),
        (lambda: scale(LLAMA2, "yarn", 2, beta_slow=64.0), "beta_slow < beta_fast"),
        (lambda: scale(RopeGeometry(2, 1e4, 512), "ntk", 2), "two pairs"),
        (lambda: RopeGeometry(63, 1e4, 4096), "must be even"),
        (lambda: RopeGeometry(64, 1.0, 4096), "base"),
        (lambda: RopeGeometry(64, 1e4, 0), "context length"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(InputError, match=says):
        call()
