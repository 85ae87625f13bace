"""Rank correlations of measures with loss: against scipy, against what records state, and on selections made up."""

import numpy as np
import pytest
from core.relative import Profile, averaged, bin_edges
from scipy.stats import spearmanr

from analysis.relative import ALL, BEYOND, MEASURED, SCALE_FREE, correlations, measures, spearman
from analysis.results import Results
from core.disturbance import CONVENTIONS
from core.errors import InputError
from core.geometry import RopeGeometry

GEOMETRY = RopeGeometry(64, 100000.0, 8192)
SELECTIONS = [[], [31], [20, 31], list(range(20, 32)), list(range(32)), [0, 1, 2]]


def add(made, losses, file="s=2", **fields):
    """A record of selections whose loss is the same in each block."""
    blocks = {str(name): [loss] * 4 for name, loss in enumerate(losses)}
    rows = [
        {"options": {}, "interpolated_pairs": pairs, "disturbance": {"released": -loss, "equation": loss},
         "within": {}, "beyond": {}}
        for pairs, loss in zip(SELECTIONS, losses)
    ]  # fmt: skip
    made.records[f"selections/{file}.json"] = {
        "factor": 2, "scores": rows, "block": 4096, "blocks": blocks, "selections": list(blocks),
        "spearman": {name: {"mean": 0.0, "low": 0.0, "high": 0.0, "n": 6} for name in CONVENTIONS},
    } | fields  # fmt: skip


def measure_of(pairs, profile=None):
    lambdas = np.where(np.isin(np.arange(32), pairs), 2.0, 1.0)
    return averaged(GEOMETRY, 2, lambdas, profile)


def run_of(made):
    results = made.results()
    (run,) = results.records("selections")
    return results, run


def test_each_selection_has_the_measure_of_its_own_factors(made):
    add(made, range(6))
    found = measures(*run_of(made))
    assert set(found) == {*CONVENTIONS, SCALE_FREE}
    np.testing.assert_allclose(found[SCALE_FREE], [measure_of(pairs) for pairs in SELECTIONS])


def test_a_measured_profile_is_taken_where_there_is_one(made):
    edges = bin_edges(8192)
    mass = np.random.default_rng(0).uniform(size=len(edges) - 1)
    add(made, range(6))
    for length, file in ((8192, "L=8192"), (512, "L=512")):
        made.records[f"attention_distance/{file}.json"] = {
            "length": length, "distances": edges.tolist(), "mass": mass.tolist()
        }  # fmt: skip
    found = measures(*run_of(made))
    np.testing.assert_allclose(found[MEASURED], [measure_of(pairs, Profile(edges, mass)) for pairs in SELECTIONS])


def test_loss_in_the_order_of_a_measure_correlates_with_it(made):
    add(made, [measure_of(pairs) for pairs in SELECTIONS])
    found = {(each.measure, each.positions): each.score for each in correlations(*run_of(made))}
    for positions in (BEYOND, ALL):
        for measure, expected in ((SCALE_FREE, 1), ("released", -1), ("equation", 1)):
            score = found[measure, positions]
            assert score.mean == score.low == score.high == pytest.approx(expected) and score.n == 6


@pytest.mark.parametrize("scale", ["tiny", "smollm2"])
def test_the_papers_measure_has_what_the_record_states(scale):
    results = Results.of(scale)
    for run in results.records("selections"):
        found = {(each.measure, each.positions): each.score for each in correlations(results, run)}
        for name in CONVENTIONS:
            for bound in ("mean", "low", "high"):
                stated = run["spearman"][name][bound]
                assert getattr(found[name, BEYOND], bound) == pytest.approx(stated, abs=1e-9)


def test_many_correlations_at_a_time_are_scipys():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 6, (20, 15)), rng.normal(size=(20, 15))
    expected = [spearmanr(*pair).statistic for pair in zip(left, right)]
    np.testing.assert_allclose(spearman(left, right), expected)
    assert np.isnan(spearman(np.ones(3), np.arange(3)))


NO_PAIR = {"interpolated_pairs": [40], "disturbance": {"released": 0, "equation": 0}}


@pytest.mark.parametrize("broken", [{"selections": ["0"]}, {"scores": [NO_PAIR] * 6}])
def test_a_record_that_does_not_fit_is_refused(made, broken):
    add(made, range(6))
    results, run = run_of(made)
    with pytest.raises(InputError):
        correlations(results, {**run, **broken})
