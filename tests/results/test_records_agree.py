"""What a record sums up is what it holds, and records that must agree do: recomputed here, from the
records alone."""

from collections import defaultdict

import numpy as np
import pytest

from analysis import results

ALL = [
    (measured.model.name, name) for measured in results.every() for name in measured.experiments()
]


def records(model, experiment):
    return results.Results.of(model).records(experiment)


def of(experiment):
    return pytest.mark.parametrize("model", [model for model, name in ALL if name == experiment])


@pytest.mark.parametrize(("model", "experiment"), ALL)
def test_every_interval_holds_its_mean(model, experiment):
    def check(value):
        if isinstance(value, dict) and {"mean", "low", "high"} <= value.keys():
            assert value["low"] <= value["mean"] + 1e-9 and value["mean"] <= value["high"] + 1e-9
        for inner in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        ):
            if isinstance(inner, (dict, list)):
                check(inner)

    for record in records(model, experiment):
        check(record.scores)


@of("ruler")
def test_ruler_is_the_mean_of_its_tasks(model):
    for record in records(model, "ruler"):
        scores = record.scores
        assert [*scores["tasks"]] == [str(length) for length in record.run["lengths"]]
        means = {
            length: np.mean([s["mean"] for s in tasks.values()])
            for length, tasks in scores["tasks"].items()
        }
        for length, mean in means.items():
            assert [*scores["tasks"][length]] == record.run["tasks"]
            assert scores["lengths"][length]["mean"] == pytest.approx(mean)
            assert (
                scores["lengths"][length]["n"] == len(record.run["tasks"]) * record.run["samples"]
            )
        assert scores["average"]["mean"] == pytest.approx(np.mean(list(means.values())))


@of("passkey")
def test_passkeys_by_length_are_those_by_depth(model):
    for record in records(model, "passkey"):
        found = defaultdict(list)
        for row in record.scores["by_depth"]:
            found[row["length"]] += [row["mean"]] * row["n"]
        by_length = {row["length"]: row for row in record.scores["by_length"]}
        assert by_length.keys() == found.keys()
        for length, answers in found.items():
            assert by_length[length]["mean"] == pytest.approx(np.mean(answers))
            assert by_length[length]["n"] == len(answers)


@of("open_llm")
def test_benchmarks_are_the_means_of_their_documents(model):
    for record in records(model, "open_llm"):
        tasks = dict(record.scores["tasks"])
        average = tasks.pop("average", None)
        if average:
            means = [score["mean"] for score in tasks.values()]
            assert average["mean"] == pytest.approx(np.mean(means))
        for task, documents in record.scores["by_document"].items():
            rounded = pytest.approx(100 * np.mean(documents), abs=5e-3)
            assert tasks[task]["mean"] == rounded
            assert tasks[task]["n"] == len(documents)


@of("longbench_e")
def test_longbench_buckets_are_the_means_of_their_tasks(model):
    for record in records(model, "longbench_e"):
        for bucket, score in record.scores["buckets"].items():
            tasks = [
                task[bucket]["mean"] for task in record.scores["tasks"].values() if bucket in task
            ]
            assert score["mean"] == pytest.approx(np.mean(tasks))
