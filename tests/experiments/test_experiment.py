"""Runs are resumed after a kill, divided among processes, and told apart by every option."""

import json
import os
import signal

import pytest

from core.extend import export, extend
from eval.generation import generate
from experiments.kit import records
from tests import processes
from tests.models import byte_tokenizer, checkpoint, fine_tuned, random_model

ARGUMENTS = ["--method", "pi", "--lengths", "512", "--depths", "3", "--keys", "4"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("model") / "toy", max_position_embeddings=512)


def command(model, results, *more):
    return ["experiments.passkey", "--model", model, "--results", results, *ARGUMENTS, *more]


def record(results):
    (file,) = (results / "toy" / "passkey").glob("*.json")
    return json.loads(file.read_text())


def journal(results):
    lines = []
    for file in (results.parent / "runs" / "toy" / "passkey").glob("*.jsonl"):
        lines += [json.loads(line) for line in file.read_text().splitlines()]
    return lines


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """One uninterrupted run in one process."""
    results = tmp_path_factory.mktemp("whole") / "results"
    assert processes.wait(processes.command(*command(model, results))) == 0
    return results


def test_killed_and_started_again_it_ends_with_the_same_scores_and_nothing_twice(
    model, whole, tmp_path, monkeypatch
):
    results = tmp_path / "results"
    # A small cache makes many small batches, so that the kill falls between journalled parts.
    whole_cache = generate.__wrapped__.__defaults__
    monkeypatch.setattr(generate.__wrapped__, "__defaults__", (700, *whole_cache[1:]))
    killed = processes.command(*command(model, results))
    monkeypatch.undo()
    processes.until(lambda: len(journal(results)) >= 3, seconds=120)
    os.kill(killed, signal.SIGKILL)
    processes.wait(killed)
    assert not (results / "toy" / "passkey").exists(), "the run was over before it was killed"
    kept = journal(results)
    assert processes.wait(processes.command(*command(model, results))) == 0
    assert record(results)["scores"] == record(whole)["scores"]
    assert journal(results)[: len(kept)] == kept
    assert len({key for key, _ in journal(results)}) == len(journal(results)) == 12


def test_what_other_code_scored_is_not_used(model, whole, tmp_path, monkeypatch, call):
    results = tmp_path / "results"
    monkeypatch.setattr("experiments.kit.records.code_hash", lambda program: "old")
    assert call(*command(model, results))[0] == 0
    (old,) = (results.parent / "runs" / "toy" / "passkey").glob("*.old.*.jsonl")
    lines = [json.loads(line) for line in old.read_text().splitlines()]
    wrong = [[key, entry | {"value": entry["value"] | {"score": 0.5}}] for key, entry in lines]
    old.write_text(
        "".join(json.dumps(line) + "\n" for line in wrong[:8])
    )  # as far as the kill let it come
    (results / "toy" / "passkey" / "pi_s=2.json").unlink()
    monkeypatch.undo()
    status, _, err = call(*command(model, results))
    assert status == 0 and "note" in err
    assert record(results)["scores"] == record(whole)["scores"]


def test_the_hash_of_the_code_covers_all_that_measures(monkeypatch):
    files = {
        "core/rope.py",
        "eval/passkey.py",
        "experiments/kit/journal.py",
        "experiments/passkey.py",
    }
    assert files <= {*records.code_files("experiments.passkey")}
    assert "experiments/ruler.py" not in records.code_files("experiments.passkey")
    anew = records.code_hash.__wrapped__
    now = anew("experiments.passkey")
    monkeypatch.setattr(records, "version", lambda name: "0.0")
    assert anew("experiments.passkey") != now


def test_two_processes_score_as_one(model, whole, tmp_path):
    results = tmp_path / "results"
    children = [
        processes.command(*command(model, results), environment=rank) for rank in processes.ranks()
    ]
    assert [processes.wait(child) for child in children] == [0, 0]
    assert record(results)["scores"] == record(whole)["scores"]
    assert record(results)["identity"] == record(whole)["identity"]
    files = sorted((results.parent / "runs" / "toy" / "passkey").glob("*.jsonl"))
    assert [len(file.read_text().splitlines()) for file in files] == [6, 6]


def test_a_fine_tuned_checkpoint_is_recorded_under_its_method(tmp_path, call):
    model = export(
        extend(random_model(max_position_embeddings=512), "yarn", 4),
        tmp_path / "yarn",
        byte_tokenizer(),
    )
    training = fine_tuned(model)
    options = ["--depths", "1", "--keys", "1", "--lengths", "1024"]
    assert call("passkey", "--model", model, "--results", tmp_path / "results", *options)[0] == 0
    found = record(tmp_path / "results")
    run = found["run"]
    assert (run["method"], run["factor"]) == ("yarn", 4.0)
    assert found["base"] == {"model.safetensors": "def"}
    settings = records.identity(**records.asked(training) | {"seed": None})
    stated = {key: training[key] for key in ("identity", "seed", "steps", "length")}
    assert run["training"] == stated | {"settings": settings}
