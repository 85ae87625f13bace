"""The disturbance of each setting beside the paper's numbers, recorded or computed."""

import numpy as np
import pytest

from analysis import disturbance
from analysis.disturbance import WAYS
from analysis.results import Results
from analysis.settings import Setting
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution
from core.errors import InputError

SMOLLM2 = Results.of("smollm2")


def test_disturbance_stands_beside_what_the_paper_published():
    rows = {row.name: row for row in disturbance.rows(Results.of("llama2-7b"))}
    for name, at_8k, at_16k in (("PI", 24.08, 33.67), ("YaRN", 25.55, 35.44), ("DPRoPE (t = 0)", 6.71, 22.92)):
        assert rows[name].published == {2.0: at_8k, 4.0: at_16k}
        for factor, published in rows[name].published.items():
            assert rows[name].moved[factor][WAYS[0]].average == pytest.approx(published, rel=0.004)
    exact = [rows["PI"].moved[factor][way].average for factor in (2.0, 4.0) for way in WAYS[1:]]
    assert exact == pytest.approx([24.06, 190.78, 33.62, 210.38], abs=0.005)
    assert rows["original"].published == {} and rows["DPRoPE (the paper's n̂)"].published == {}
    assert 0 < max(disturbance.deviations(list(rows.values()), WAYS[0])) < 0.004


def test_n_hat_by_hand_is_one_row_and_any_other_setting_its_own(made):
    made.facts["n_hat"] = {"2": 28, "4": 26}
    for factor, count in ((2, 28), (4, 26)):
        for method, options in (("dprope", {"n_hat": count}), ("dprope", {"n_hat": 60}), ("pi", {}), ("dropped", {})):
            counted = {"precision": "float64", "convention": "released", "average": 1e-3, "interpolated_dimensions": 2}
            made.add("disturbance", method, [counted], factor, options)
    rows = disturbance.rows(made.results())
    # No row is of a method that is not registered.
    assert [row.name for row in rows] == ["PI", "DPRoPE (n̂ = 60)", "DPRoPE (the paper's n̂)"]
    assert [list(row.moved) for row in rows] == [[2.0, 4.0]] * 3


def test_the_disturbance_of_a_setting_without_a_record_is_that_of_its_pairs():
    def of(method, **options):
        return disturbance.averaged(SMOLLM2, Setting(method, tuple(sorted(options.items())), 2.0))

    assert of("dprope", n_hat=64) == pytest.approx(of("pi"))
    assert of("dprope", n_hat=0, attention_factor=1.1) == pytest.approx(of("original"))
    assert of("dprope", intervals=360) == pytest.approx(of("dprope"))
    assert of("clex") is None and of("never-heard-of") is None and of("dprope", no_option=1) is None


def test_the_disturbance_of_a_method_registered_here_is_that_of_its_angles(monkeypatch):
    def half_way(geometry, factor, *, share: float = 0.5):
        moved = geometry.inv_freq * (1 - share) + geometry.inv_freq / factor * share
        return rope.RopeScaling(moved, 1.0, np.zeros(geometry.pairs, dtype=bool))

    monkeypatch.setitem(rope.METHODS, "half-way", rope.Method("half-way", "Half way", half_way))
    geometry = SMOLLM2.model.geometry
    moved = geometry.inv_freq * 0.75 + geometry.inv_freq / 2 * 0.25
    wanted = kl.disturbance(angle_distribution(moved, 16384), angle_distribution(geometry.inv_freq, 8192)).mean()
    assert disturbance.averaged(SMOLLM2, Setting("half-way", (("share", 0.25),), 2.0)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "other", [{"geometry": {"head_dim": 64, "base": 5e5, "context_length": 8192}}, {"intervals": 90}]
)
def test_a_record_of_another_geometry_or_histogram_stands_in_no_table(made, other):
    counted = {"precision": "float64", "convention": "released", "average": 1e-3, "interpolated_dimensions": 2}
    same = {"geometry": made.facts["geometry"], "intervals": 360}
    made.add("disturbance", "pi", [counted], 2, {}, **same)
    assert len(disturbance.rows(made.results())) == 1
    made.add("disturbance", "yarn", [counted], 2, {}, **same | other)
    with pytest.raises(InputError, match="yarn"):
        disturbance.rows(made.results())
