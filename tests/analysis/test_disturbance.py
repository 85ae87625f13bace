"""The disturbance of each setting: the paper's numbers, and those of the angles by hand."""

import numpy as np
import pytest

from analysis import disturbance, published
from analysis.disturbance import CONVENTIONS, FLOAT32
from analysis.results import Results
from analysis.settings import Setting
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution

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


def test_the_disturbance_of_a_method_registered_here_is_that_of_its_angles(monkeypatch):
    def half_way(geometry, factor, *, share: float = 0.5):
        between = geometry.inv_freq * (1 - share) + geometry.inv_freq / factor * share
        return rope.RopeScaling(between, 1.0, np.zeros(geometry.pairs, dtype=bool))

    monkeypatch.setitem(rope.METHODS, "half-way", rope.Method("half-way", "Half way", half_way))
    between = GEOMETRY.inv_freq * 0.75 + GEOMETRY.inv_freq / 2 * 0.25
    expected = kl.disturbance(
        angle_distribution(between, 16384), angle_distribution(GEOMETRY.inv_freq, 8192)
    )
    computed = disturbance.compute(GEOMETRY, Setting("half-way", (("share", 0.25),), 2.0))
    assert computed.per_pair == pytest.approx(expected) and computed.interpolated == 0
