"""The paper's method by its defining property, and its options."""

from hypothesis import given, settings

from core.angles import angle_distribution
from core.disturbance import disturbance, strategy_disturbance
from core.rope import scale
from tests.core.geometries import LLAMA2, factors, geometries


@settings(max_examples=12)
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
