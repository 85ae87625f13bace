"""A record is known by everything that was asked of it, what it sums up is what it holds, and
records that must agree do: recomputed here, from the records alone."""

import hashlib
import json
from collections import defaultdict

import numpy as np
import pytest

from analysis import results
from experiments.kit.records import MODEL, RESULTS

FILES = [file for file in sorted(RESULTS.rglob("*.json")) if file.name != MODEL]
RECORDS = {file: json.loads(file.read_text(encoding="utf-8")) for file in FILES}
ALL = [(measured.name, name) for measured in results.every() for name in measured.experiments()]


def computed(record: dict) -> str:
    return hashlib.sha256(json.dumps(record["run"], sort_keys=True).encode()).hexdigest()[:12]


def test_every_identity_is_that_of_what_the_record_states():
    for file, record in RECORDS.items():
        assert record["identity"] == computed(record), file


def test_every_score_states_the_content_of_what_was_scored_and_of_the_model():
    for file, record in RECORDS.items():
        run = record["run"]
        assert run["model"].keys() >= {"source", "sha256", "tokenizer"}, file
        if "base" in record:
            assert record["base"].keys() >= {"tokenizer", "config"}, file
        if run["experiment"] in ("passkey", "ruler", "longbench_e"):
            assert run["data"].keys() >= {"samples", "sha256"} and run["data"]["samples"], file


def test_the_papers_n_hat_is_the_papers_share_of_the_head_dimension():
    for measured in results.every():
        d = measured.geometry.head_dim
        assert measured.n_hat == {2: d * 80 // 128, 4: d * 64 // 128}


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
