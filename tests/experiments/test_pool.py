"""The pool of commands: what runs beside what, which GPUs each is given, and records that several settings share."""

import json
import os
import random
import signal
import time
from multiprocessing import forkserver

import psutil
import pytest
import torch

from core import files
from core.errors import InputError
from experiments.kit import pool
from experiments.kit.pool import Chain, Machine
from tests import processes

MODULE = "tests.experiments.told"


def told(tmp_path, chains, here):
    pool.run(chains, here, tmp_path / "logs")
    rows = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    return {row["name"]: row for row in rows}


def command(tmp_path, name):
    return [MODULE, str(tmp_path / "told"), name]


def overlap(one, another):
    return one["began"] < another["ended"] and another["began"] < one["ended"]


def test_what_trains_has_all_gpus_to_itself_and_each_evaluation_one(forked, tmp_path):
    chains = [
        Chain(name, [command(tmp_path, f"train {name}"), command(tmp_path, f"score {name}")], trains=1) for name in "ab"
    ]
    found = told(tmp_path, chains, Machine(("4", "7"), 2))
    assert found["train a"]["gpus"] == found["train b"]["gpus"] == "4,7"
    assert {found["score a"]["gpus"], found["score b"]["gpus"]} == {"4", "7"}
    assert {row["program"] for row in found.values()} == {MODULE}  # so that it starts a process for each GPU
    trained = [found["train a"], found["train b"]]
    assert not any(overlap(one, another) for one in trained for another in found.values() if another is not one)


def test_a_machine_without_gpus_hides_none(forked, tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = told(tmp_path, [Chain("a", [command(tmp_path, "a")])], Machine((), 2))
    assert found["a"]["gpus"] is None


def test_the_gpus_that_are_visible_are_divided(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert Machine.found().slots == [("0",), ("1",), ("2",), ("3",)]
    assert Machine.found(workers=2).slots == [("0",), ("1",)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,6,7")
    assert Machine.found().slots == [("2",), ("5",), ("6",), ("7",)] and Machine.found().single.slots == [("2",)]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(6))
    assert Machine.found().slots == [()] * 6 and Machine.found(workers=2).slots == [()] * 2


def test_records_stand_again_under_each_setting_of_the_same_pairs(tmp_path):
    """Those of the very run, whatever they were measured on; not another run's whose name begins alike."""

    def write(name, options, seed=None):
        training = {} if seed is None else {"training": {"seed": seed}}
        record = {"method": "dprope", "factor": 2, "options": options, "scores": [name], "identity": "x", **training}
        files.write_json(tmp_path / "perplexity" / f"{name}.json", record)

    write("dprope_n-hat=44_s=2_seed=0", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2_seed=0_whole", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2", {"n_hat": 44})
    write("dprope_n-hat=44_s=2_seed=01", {"n_hat": 44}, seed=1)
    same = [("perplexity", ("dprope", {"intervals": 180})), ("ruler", ("dprope", {"intervals": 180}))]
    pool.share(Chain("dprope_n-hat=44_s=2_seed=0", [], same=same), tmp_path)
    made = {file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*/*intervals*.json")}
    assert set(made) == {"dprope_intervals=180_s=2_seed=0", "dprope_intervals=180_s=2_seed=0_whole"}
    for name, record in made.items():
        first = name.replace("intervals=180", "n-hat=44")
        assert record["options"] == {"intervals": 180} and record["scores"] == [record["same_selection_as"]] == [first]


def test_commands_run_in_order_and_a_failure_says_where(forked, tmp_path):
    chains = [Chain(name, [["experiments.passkey", "--help"]] * 2) for name in "abc"]
    pool.run(chains, pool.Machine((), 2), tmp_path / "logs")
    assert all((tmp_path / "logs" / f"{name}.log").read_text().count("usage:") == 2 for name in "abc")
    bad = Chain("bad", [["experiments.passkey", "--depths", "0"]])
    with pytest.raises(InputError, match=r"experiments.passkey failed \(.*--depths.*bad.log"):
        pool.run([bad], pool.Machine((), 1), tmp_path / "logs")


def test_commands_that_end_together_are_told_apart(tmp_path, monkeypatch):
    """Two that ask of the same process get its exit status and an error; slow to read it, they would meet often."""
    read, delay = forkserver.read_signed, random.Random(0)

    def slowly(pipe):
        time.sleep(0.2 * delay.random())
        return read(pipe)

    monkeypatch.setattr(forkserver, "read_signed", slowly)
    monkeypatch.setattr(pool, "LIBRARIES", ("experiments.training.launch",))
    chains = [Chain(name, [command(tmp_path, name)] * 3) for name in "abc"]
    pool.run(chains, pool.Machine((), 3), tmp_path / "logs")


def test_of_a_lenient_run_what_refuses_its_input_is_skipped(forked, tmp_path):
    chain = Chain("a", [["experiments.passkey", "--model", "nonesuch"], ["experiments.passkey", "--help"]])
    ((experiment, reason),) = pool.run([chain], pool.Machine((), 1), tmp_path / "logs", lenient=True)
    assert experiment == "passkey" and "nonesuch" in reason
    assert "usage:" in (tmp_path / "logs" / "a.log").read_text()
    for options in (["--no-such-option"], ["--results", str(tmp_path / "logs" / "a.log")]):  # ours, or the machine's
        broken = Chain("b", [["experiments.passkey", *options]])
        with pytest.raises(InputError, match=r"experiments.passkey failed"):
            pool.run([broken], pool.Machine((), 1), tmp_path / "logs", lenient=True)


def test_what_a_command_started_ends_with_the_rerun_that_started_the_command(forked, tmp_path):
    """As the processes of a fine-tune on several GPUs, which a kill would leave there."""
    chain = Chain("a", [command(tmp_path, "parent")])
    rerun = processes.fork(lambda: pool.run([chain], Machine((), 1), tmp_path / "logs"))
    file = tmp_path / "told"
    wait(lambda: file.is_file() and file.read_text())
    child = int(file.read_text())
    assert lives(child)
    os.kill(rerun, signal.SIGKILL)
    processes.wait(rerun)
    wait(lambda: not lives(child))


def lives(process):
    """Asked once: between two questions a process may end."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait(until, seconds=60):
    """Until that is so."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)
