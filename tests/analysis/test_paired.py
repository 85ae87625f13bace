"""Pairs of settings on the same samples: hand-worked cases, and the same counted apart."""

import numpy as np
import pytest
from scipy.stats import binomtest

from analysis import paired
from analysis.results import Results
from analysis.rows import compared
from tests.analysis.made import TASKS, paired_bootstrap, score


def ruler(**by_length):
    return {
        "tasks": {length: {task: score(mean) for task, mean in tasks.items()} for length, tasks in by_length.items()}
    }


def test_ruler_is_paired_by_task_and_length_of_whatever_order(made):
    made.add("ruler", "yarn", ruler(short={"vt": 50, "cwe": 50}, long={"vt": 10, "cwe": 0}))
    made.add("ruler", "pi", ruler(long={"cwe": 0, "vt": 0}, short={"cwe": 80, "vt": 10}))
    pi, yarn = compared(made.results(), "ruler", False).rows
    found = paired.ruler(pi, yarn)
    assert found.difference.mean == pytest.approx((-40 + 30 - 10 + 0) / 4) and found.difference.n == 4
    assert (found.test.better, found.test.worse, found.test.p) == (1, 2, 1.0)


def test_ruler_of_several_seeds_is_the_mean_of_each_task(made):
    for seed, mean in ((0, 0), (1, 60)):
        made.add("ruler", "pi", ruler(short={"vt": mean}), seed=seed)
    made.add("ruler", "yarn", ruler(short={"vt": 10}), seed=0)
    pi, yarn = compared(made.results(), "ruler", True).rows
    assert paired.ruler(pi, yarn).difference.mean == 20


def test_ruler_on_the_records_is_what_counting_gives():
    rows = compared(Results.of("smollm2"), "ruler", False, twins=False)
    yarn = rows.find("yarn", {})
    own, other = (
        np.array([s["mean"] for tasks in row.first["scores"]["tasks"].values() for s in tasks.values()])
        for row in (rows.find("dprope", {}), yarn)
    )
    found = paired.ruler(rows.find("dprope", {}), yarn)
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
        same = paired.untrained_of(row, untrained)
        assert (same is not None) == (row.setting.method == "pi")
    (other,) = compared(results, "ruler", True, lambda run: run["data"] == {"a": 2}).rows
    assert paired.untrained_of(other, untrained) is None


def test_what_training_changes_is_paired_by_block_window_and_item(made):
    def extension(loss):
        ranges = [{"start": 0, "end": 8192}, {"start": 8192, "end": 16384}]
        return {"data": {"A": 1}, "length": 16384, "block": 8192, "blocks": {"A": [9.0, loss]}, "ranges": ranges}

    def whole(loss):
        by_position = {f"A/16384/{begin}": [9.0, loss + begin] for begin in (0, 8192)}
        shared = {"tokens": None, "lengths": [16384], "stride": 8192, "bucket": 8192}
        return shared | {"by_position": by_position}

    def items(right):
        return {"by_document": {task: [1.0] * right + [0.0] * (10 - right) for task in TASKS}}

    for seed, less in ((None, 0), (0, 1), (1, 2)):
        made.add("extension", "pi", seed=seed, **extension(5.0 - less))
        made.add("perplexity", "pi", seed=seed, **whole(4.0 - 2 * less))
        made.add("open_llm", "pi", seed=seed, **items(5 + less))
        if seed is not None:
            made.add("extension", "clex", seed=seed, **extension(1.0))  # is none without training
    (change,) = paired.training_changes(made.results())
    ((setting, scores),) = change.by_setting.items()
    assert (change.factor, setting.method) == (2.0, "pi")
    means = {metric: score.mean for metric, score in scores.items()}
    assert means == pytest.approx({paired.LOSS: -1.5, paired.WHOLE: -3.0, paired.AVERAGE: 15.0})
    assert (scores[paired.WHOLE].low, scores[paired.WHOLE].high, scores[paired.WHOLE].n) == (-3, -3, 2)


def test_an_average_of_fewer_than_all_benchmarks_is_none(made):
    for seed in (None, 0):
        made.add("open_llm", "pi", seed=seed, by_document={"mmlu": [1.0]})
    assert paired.training_changes(made.results()) == []
