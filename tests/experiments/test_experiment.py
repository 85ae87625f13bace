"""Runs are resumed after a kill, divided among processes, and told apart by the code that
scores."""

import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

import records
from experiments.kit.experiment import MINIATURE, Experiment
from tests import processes
from tests.experiments.written import journal, journal_files, record, record_file
from tests.models import checkpoint

COMMAND = "passkey --method pi --lengths 512 --depths 3 --keys 4"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return checkpoint(tmp_path_factory.mktemp("model") / "toy", max_position_embeddings=512)


def start(model, results, environment=None):
    """Begin the command in another process; its id."""
    name, *options = COMMAND.split()
    line = [f"experiments.{name}", *options, "--model", model, "--results", results]
    return processes.command(*line, environment=environment)


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """The record of one uninterrupted run in one process."""
    results = tmp_path_factory.mktemp("whole") / "results"
    assert processes.wait(start(model, results)) == 0
    return record(results)


def test_killed_and_started_again_it_ends_with_the_same_scores_and_nothing_twice(
    model, whole, results, monkeypatch
):
    with monkeypatch.context() as patched:
        # Many small batches, so that the kill falls between journalled parts.
        patched.setattr("eval.generation.CPU_TOKENS", 700)
        killed = start(model, results)
    processes.until(lambda: len(journal(results)) >= 3, seconds=120)
    os.kill(killed, signal.SIGKILL)
    processes.wait(killed)
    assert not list(results.rglob("*.json")), "the run was over before it was killed"
    (file,) = journal_files(results)
    kept = file.read_text().rpartition("\n")[0]
    assert processes.wait(start(model, results)) == 0
    assert record(results)["scores"] == whole["scores"]
    assert file.read_text().startswith(kept)
    assert len(journal(results)) == 12


def test_what_other_code_scored_is_not_used(model, whole, results, monkeypatch, done):
    line = [COMMAND, "--model", model, "--results", results]
    with monkeypatch.context() as patched:
        patched.setattr(records, "code_hash", lambda: "old")
        done(*line)
    (old,) = journal_files(results)
    old.write_text(old.read_text().replace('"score": ', '"score": 7'))
    record_file(results).unlink()
    done(*line)
    assert record(results)["scores"] == whole["scores"]


def test_a_record_that_another_command_wrote_meanwhile_is_kept(
    model, results, monkeypatch, done, refusal
):
    line = ["--model", model, "--results", results]
    other = COMMAND.replace("--keys 4", "--keys 2")
    environment = records.environment

    def meanwhile(*arguments):
        monkeypatch.setattr(records, "environment", environment)
        done(other, *line)
        return environment(*arguments)

    monkeypatch.setattr(records, "environment", meanwhile)
    assert "give another --results, or --replace" in refusal(COMMAND, *line)
    assert record(results)["run"]["keys"] == 2


def test_code_that_was_changed_or_added_is_no_commits(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    assert records.commit() == "unknown"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    (tmp_path / "core").mkdir()
    (tmp_path / "core/rope.py").write_text("")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "notes.txt").write_text("")
    assert len(records.commit()) == 40
    (tmp_path / "core/new.py").write_text("")
    assert records.commit().endswith(" with changes")
    monkeypatch.setenv("PATH", "/nonexistent")  # without git
    assert records.commit() == "unknown"


def test_other_code_or_another_library_has_another_hash(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    hashed = records.code_hash.__wrapped__
    hashes = [hashed()]
    for file in ("core/methods/paper.py", "eval/generation.py", "experiments/passkey.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        for content in ("", "x = 1"):
            (tmp_path / file).write_text(content)
            hashes.append(hashed())
    monkeypatch.setattr(records, "version", lambda name: "0.0")
    hashes.append(hashed())
    assert len({*hashes}) == len(hashes)


def test_two_processes_score_as_one(model, whole, results):
    children = [start(model, results, rank) for rank in processes.ranks()]
    assert [processes.wait(child) for child in children] == [0, 0]
    for key in ("scores", "identity"):
        assert record(results)[key] == whole[key]
    assert [len(file.read_text().splitlines()) for file in journal_files(results)] == [6, 6]


def test_samples_imitate_a_benchmark_by_what_their_own_folder_says(tmp_path, monkeypatch):
    (tmp_path / MINIATURE).write_text('{"benchmark": "generated"}')
    monkeypatch.chdir(tmp_path)
    of_the_hub, of_the_folder = (SimpleNamespace(benchmark=each) for each in (None, tmp_path))
    assert Experiment.imitated.fget(of_the_hub) == {}
    assert Experiment.imitated.fget(of_the_folder) == {"benchmark": "generated"}
