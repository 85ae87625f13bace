"""Commands within a time: which begin, which are done, and what is still running at the end."""

import time
from pathlib import Path

import pytest

from core import files
from experiments.kit import command_line, pool
from experiments.kit.deadline import LOADING, Deadline
from experiments.kit.pool import Chain, Machine
from experiments.training import launch  # noqa: F401 (once, rather than in every command)
from tests.experiments.test_pool import command


def within(seconds, folder, committed=None, on_gpu=False):
    return Deadline(seconds, folder, committed, on_gpu)


def ran(tmp_path):
    """The names of the commands that ended, in order."""
    lines = (tmp_path / "told").read_text().splitlines() if (tmp_path / "told").exists() else []
    return [line.split('"')[3] for line in lines]


def test_what_ended_is_not_begun_again_as_long_as_its_record_is_there(forked, tmp_path):
    """Nor is a model made anew of which all is measured; a record that is gone is measured, with what it needs."""

    def call():
        one = Chain("a", [command(tmp_path, name) for name in ("train", "loss", "keys")], trains=1)
        other = Chain("b", [command(tmp_path, "b")])
        pool.run([one, other], Machine((), 1), tmp_path / "logs", deadline=within(600, tmp_path))
        return ran(tmp_path)

    every = ["train", "loss", "keys", "b"]
    assert call() == every and call() == every
    (tmp_path / "keys.json").unlink()
    assert call() == [*every, "train", "keys"]


def test_nothing_begins_that_the_time_left_does_not_allow(forked, tmp_path):
    """The best comes first; what is too long for the rest is left for what is short enough. A model needs the time to
    make and to measure it."""
    deadline = within(50, tmp_path)
    for name, seconds in (("score", 30), ("train", 30), ("long", 60), ("short", 1)):
        deadline._notes[f"{name} x"] = {"seconds": seconds, "records": []}
    asked = {name: [name, "x"] for name in ("score", "train", "long", "short")}
    assert [deadline.allows([asked[name]]) for name in asked] == [True, True, False, True]
    begun = []
    deadline.allows = lambda commands: begun.append([c[-1] for c in commands]) or len(commands) == 1
    chains = [Chain("a", [command(tmp_path, "train"), command(tmp_path, "score")], trains=1)]
    chains.append(Chain("b", [command(tmp_path, "short")]))
    pool.run(chains, Machine((), 1), tmp_path / "logs", deadline=deadline)
    assert begun == [["train", "score"], ["short"]] and ran(tmp_path) == ["short"]


def test_a_command_takes_what_it_took_else_what_committed_records_state(tmp_path):
    for name, seconds, environment in (("a", 100.0, {}), ("b", 300.0, {}), ("c", 7.0, {"gpus": 1})):
        record = {"seconds": seconds, "environment": environment}
        files.write_json(tmp_path / "committed" / "beyond" / "passkey" / f"{name}.json", record)
    score = ["experiments.passkey", "--keys", "1"]
    for on_gpu, seconds in ((False, 300), (True, 7)):
        deadline = within(60, tmp_path, tmp_path / "committed", on_gpu)
        assert deadline.expected(score) == seconds + LOADING
        assert deadline.expected(["experiments.ruler"]) == LOADING
    assert within(60, tmp_path).expected(score) == LOADING
    deadline.note(score, 40, ["5: 0.7", str(tmp_path / "results" / "a.json")])
    deadline.note([*score, "--depths", "2"], 90, [])
    again = within(60, tmp_path, tmp_path / "committed")
    assert again.expected(["experiments.passkey"]) == 90 and not again.allows([score])
    assert again.to_do(Chain("a", [score])).commands == [score]  # the record is not there
    files.write_json(tmp_path / "results" / "a.json", {})
    assert again.to_do(Chain("a", [score])).commands == []


def test_the_notes_hold_wherever_the_folder_is_brought(tmp_path):
    made = {name: [["experiments.passkey", "--results", str(tmp_path / name / "results")]] for name in ("one", "two")}
    record = Path("results/a.json")
    files.write_json(tmp_path / "one" / record, {})
    within(60, tmp_path / "one").note(made["one"][0], 5, [str(tmp_path / "one" / record)])
    (tmp_path / "one").rename(tmp_path / "two")
    assert within(60, tmp_path / "two").to_do(Chain("a", made["two"])).commands == []


def test_what_still_runs_at_the_end_is_stopped_and_is_not_done(forked, tmp_path):
    started, slow = time.monotonic(), Chain("a", [command(tmp_path, "parent")])
    deadline = within(LOADING + 2, tmp_path)
    deadline._end -= LOADING - 0.1  # so that 2 seconds are left when it has begun
    deadline.allows = lambda commands: True
    pool.run([slow], Machine((), 1), tmp_path / "logs", deadline=deadline)
    assert time.monotonic() - started < 30 and deadline.left == 0
    assert deadline.to_do(slow) == slow


@pytest.mark.parametrize(("text", "seconds"), [("13m", 780), ("90s", 90), ("1h30m", 5400), ("2h", 7200)])
def test_a_time_is_stated_in_hours_minutes_and_seconds(call, tmp_path, text, seconds):
    assert command_line.duration(text) == seconds
    for wrong in ("13", "m", "", "0s", "1.5h"):
        status, out, err = call("rerun", "--model", "tiny", "--for", wrong, "--output", tmp_path / "out")
        assert (status, out) == (2, "") and "is no time" in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()
