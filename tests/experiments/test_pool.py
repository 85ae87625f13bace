"""Commands on several GPUs: which GPUs each is given, and what runs beside what."""

import json
import subprocess
import sys
import time

import psutil
import torch

from experiments.kit import pool
from experiments.kit.plan import Chain
from experiments.kit.pool import Machine
from experiments.kit.records import ROOT

MODULE = "tests.experiments.told"


def told(tmp_path, chains, here):
    pool.run(chains, here, tmp_path / "logs")
    rows = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    return {row["name"]: row for row in rows}


def command(tmp_path, name):
    return [MODULE, str(tmp_path / "told"), name]


def overlap(one, another):
    return one["began"] < another["ended"] and another["began"] < one["ended"]


def test_what_trains_has_all_gpus_to_itself_and_each_evaluation_one(tmp_path):
    chains = [
        Chain(name, [command(tmp_path, f"train {name}"), command(tmp_path, f"score {name}")], trains=1) for name in "ab"
    ]
    found = told(tmp_path, chains, Machine(("4", "7"), 2))
    assert found["train a"]["gpus"] == found["train b"]["gpus"] == "4,7"
    assert {found["score a"]["gpus"], found["score b"]["gpus"]} == {"4", "7"}
    assert {row["program"] for row in found.values()} == {MODULE}  # so that it starts a process for each GPU
    trained = [found["train a"], found["train b"]]
    assert not any(overlap(one, another) for one in trained for another in found.values() if another is not one)


def test_a_machine_without_gpus_hides_none(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = told(tmp_path, [Chain("a", [command(tmp_path, "a")])], Machine((), 2))
    assert found["a"]["gpus"] is None


def test_the_gpus_that_are_visible_are_divided(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert Machine.found().slots == [("0",), ("1",), ("2",), ("3",)]
    assert Machine.found(workers=2).slots == [("0",), ("1",)]
    assert Machine.found(workers=9).slots == Machine.found().slots and Machine.found().single.slots == [("0",)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,6,7")
    assert Machine.found().slots == [("2",), ("5",), ("6",), ("7",)]


def test_without_a_gpu_a_command_has_a_core(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert Machine.found().slots == [()] * 6 and Machine.found(workers=2).slots == [()] * 2
    assert Machine.found().single.slots == [()]


def test_what_a_command_started_ends_with_the_rerun_that_started_the_command(tmp_path):
    """As the processes of a fine-tune on several GPUs, which a kill would leave there."""
    chain = f"Chain('a', [{command(tmp_path, 'parent')!r}])"
    line = f"from experiments.kit.pool import *; run([{chain}], Machine((), 1), Path({str(tmp_path / 'logs')!r}))"
    rerun = subprocess.Popen([sys.executable, "-c", line], cwd=ROOT, stderr=subprocess.DEVNULL)
    file = tmp_path / "told"
    wait(lambda: file.is_file() and file.read_text())
    child = int(file.read_text())
    assert psutil.pid_exists(child)
    rerun.kill()
    rerun.wait()
    wait(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


def wait(until, seconds=60):
    """Until that is so."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)
