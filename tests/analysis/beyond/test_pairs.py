"""Pairs of settings on the same samples: hand-worked cases, and the same counted apart."""

import numpy as np
import pytest
from scipy.stats import binomtest

from analysis.beyond import pairs
from analysis.comparison import compared
from analysis.results import Results
from tests.analysis.made import paired_bootstrap, score


def ruler(**by_length):
    return {
        "tasks": {length: {task: score(mean) for task, mean in tasks.items()} for length, tasks in by_length.items()}
    }


def test_ruler_is_paired_by_task_and_length_of_whatever_order(made):
    made.add("ruler", "yarn", ruler(short={"vt": 50, "cwe": 50}, long={"vt": 10, "cwe": 0}))
    made.add("ruler", "pi", ruler(long={"cwe": 0, "vt": 0}, short={"cwe": 80, "vt": 10}))
    pi, yarn = compared(made.results(), "ruler", False).rows
    found = pairs.ruler(pi, yarn)
    assert found.difference.mean == pytest.approx((-40 + 30 - 10 + 0) / 4) and found.difference.n == 4
    assert (found.test.better, found.test.worse, found.test.p) == (1, 2, 1.0)


def test_ruler_of_several_seeds_is_the_mean_of_each_task(made):
    for seed, mean in ((0, 0), (1, 60)):
        made.add("ruler", "pi", ruler(short={"vt": mean}), seed=seed)
    made.add("ruler", "yarn", ruler(short={"vt": 10}), seed=0)
    pi, yarn = compared(made.results(), "ruler", True).rows
    assert pairs.ruler(pi, yarn).difference.mean == 20


def test_ruler_on_the_records_is_what_counting_gives():
    rows = compared(Results.of("smollm2"), "ruler", False, twins=False)
    yarn = rows.find("yarn", {})
    own, other = (
        np.array([s["mean"] for tasks in row.first["scores"]["tasks"].values() for s in tasks.values()])
        for row in (rows.find("dprope", {}), yarn)
    )
    found = pairs.ruler(rows.find("dprope", {}), yarn)
    better, worse = np.count_nonzero(own > other), np.count_nonzero(own < other)
    assert (found.test.better, found.test.worse) == (better, worse) == (2, 8)
    assert found.test.p == pytest.approx(binomtest(2, 10).pvalue)
    assert found.difference.mean == pytest.approx((own - other).mean())
    low, high = paired_bootstrap(own - other)
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high), abs=1)


def test_only_the_same_setting_on_the_same_samples_is_the_untrained_one(made):
    for data in ({"a": 1}, {"a": 2}):
        made.add("ruler", "pi", {}, seed=0, data=data, comparable=["data"], file=f"{data}")
    made.add("ruler", "pi", {}, data={"a": 1}, comparable=["data"])
    made.add("ruler", "dprope", {}, options={"n_hat": 28}, seed=0, data={"a": 1}, comparable=["data"])
    results = made.results()
    untrained = compared(results, "ruler", False)
    for row in compared(results, "ruler", True).rows:
        same = pairs.untrained_of(row, untrained)
        assert (same is not None) == (row.setting.method == "pi")
    (other,) = compared(results, "ruler", True, lambda run: run["data"] == {"a": 2}).rows
    assert pairs.untrained_of(other, untrained) is None
