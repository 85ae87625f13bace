"""A record is known by everything that was asked of it, what it sums up is what it holds, and
records that must agree do: recomputed here, from the records alone."""

import hashlib
import json

import numpy as np
import pytest

from analysis import results
from records import MODEL, RESULTS
from tests.files import read

FILES = [file for file in sorted(RESULTS.rglob("*.json")) if file.name != MODEL]
RECORDS = {file: read(file) for file in FILES}
ALL = [(measured.name, name) for measured in results.every() for name in measured.experiments()]


def computed(record: dict) -> str:
    return hashlib.sha256(json.dumps(record["run"], sort_keys=True).encode()).hexdigest()[:12]


def test_every_identity_is_that_of_what_the_record_states():
    for file, record in RECORDS.items():
        assert record["identity"] == computed(record), file


def records(model, experiment):
    return results.Results.of(model).records(experiment)


def of(experiment):
    return pytest.mark.parametrize("model", [model for model, name in ALL if name == experiment])


@of("ruler")
def test_ruler_is_the_mean_of_its_tasks(model):
    for record in records(model, "ruler"):
        scores = record.scores
        means = []
        for length, tasks in scores["tasks"].items():
            assert [*tasks] == record.run["tasks"]
            means.append(np.mean([task["mean"] for task in tasks.values()]))
            assert scores["lengths"][length]["mean"] == pytest.approx(means[-1])
            assert scores["lengths"][length]["n"] == len(tasks) * record.run["samples"]
        assert scores["average"]["mean"] == pytest.approx(np.mean(means))


@of("passkey")
def test_passkeys_by_length_are_those_by_depth(model):
    for record in records(model, "passkey"):
        for row in record.scores["by_length"]:
            cells = [cell for cell in record.scores["by_depth"] if cell["length"] == row["length"]]
            found = sum(cell["mean"] * cell["n"] for cell in cells)
            assert row["n"] == sum(cell["n"] for cell in cells)
            assert row["mean"] * row["n"] == pytest.approx(found)
            # Wilson's, over the depths
            n, z = len(cells), 1.959964
            ends = np.roots([1 + z**2 / n, -(2 * row["mean"] + z**2 / n), row["mean"] ** 2])
            assert [row["low"], row["high"]] == pytest.approx(sorted(ends.real), abs=1e-6)


@of("open_llm")
def test_benchmarks_are_the_means_of_their_documents(model):
    for record in records(model, "open_llm"):
        tasks = record.scores["tasks"]
        means = [tasks[task]["mean"] for task in record.scores["by_document"]]
        if "average" in tasks:
            assert tasks["average"]["mean"] == pytest.approx(np.mean(means))
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
