"""The disturbance of each setting: the paper's numbers, and those of the angles by hand."""

import pytest

from analysis import disturbance, published
from analysis.disturbance import CONVENTIONS, FLOAT32
from analysis.results import Results
from core.setting import Setting

SMOLLM2 = Results.of("smollm2")
GEOMETRY = SMOLLM2.geometry


def test_float32_gives_what_the_paper_printed_and_float64_what_is_right():
    assert 0 < max(disturbance.deviations(FLOAT32)) < 0.004
    by_factor = [
        disturbance.compute(published.GEOMETRY, Setting("pi", (), factor), convention).average
        for factor in (2.0, 4.0)
        for convention in CONVENTIONS[1:]
    ]
    assert by_factor == pytest.approx([24.06, 190.78, 33.62, 210.38], abs=0.005)


def test_settings_of_the_same_pairs_have_the_same_disturbance():
    def average(method, **options):
        computed = disturbance.compute(
            GEOMETRY, Setting(method, tuple(sorted(options.items())), 2.0)
        )
        return computed and computed.average

    assert average("dprope", n_hat=64) == pytest.approx(average("pi"))
    assert average("dprope", n_hat=0, attention_factor=1.1) == pytest.approx(average("original"))
    assert average("dprope", intervals=360) == pytest.approx(average("dprope"))
    assert average("clex") is average("never-heard-of") is average("dprope", no_option=1) is None
