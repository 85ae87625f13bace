"""Chains: what runs beside what, what is skipped, what a kill leaves, and records that several
settings share."""

import json
import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

from core.errors import InputError
from experiments import base_models, rerun, suites
from experiments.kit import records
from experiments.kit.records import ROOT
from experiments.suites.suite import Chain, Suite
from tests.processes import until

SLURM = ROOT / "experiments" / "suites" / "slurm.sh"


def test_each_chain_is_a_process_and_a_failure_says_where(tmp_path):
    every = {number: Chain(f"chain {number}", []) for number in (0, 1, 4)}
    command = ["tests.experiments.chain", str(tmp_path)]
    skipped = rerun.run(every, command, tmp_path / "logs", workers=2)
    assert sorted(skipped) == [f"skipped {number}: too long" for number in every]
    assert {file.name for file in tmp_path.glob("[0-9]")} == {"0", "1", "4"}
    assert rerun.run({}, command, tmp_path / "logs", workers=2) == []
    (tmp_path / "skips-1").touch()
    skipped = rerun.run(every, command, tmp_path / "logs", workers=2)
    assert max(skipped) == "skipped the command 1: refused" and len(skipped) == 4
    (tmp_path / "fails-1").touch()
    with pytest.raises(
        InputError, match=r"chain 1 failed \(number 1 is wrong\); see .*chain 1.log"
    ):
        rerun.run(every, command, tmp_path / "logs", workers=1)
    assert (
        tmp_path / "4"
    ).read_text() == "done\n" * 2  # the one after the failure did not begin again
    (tmp_path / "logs" / "chain 4.ended").unlink()  # as after a kill
    with pytest.raises(InputError, match="chain 1 failed"):
        rerun.run(every, command, tmp_path / "logs", workers=1)
    assert (tmp_path / "4").read_text() == "done\n" * 3  # what has not ended goes first


def test_a_chain_that_needs_another_comes_last_and_one_bar_counts_all(tmp_path, capfd):
    every = {0: Chain("needing", [], needs="a checkpoint"), 1: Chain("a", []), 2: Chain("b", [])}
    command = ["tests.experiments.chain", str(tmp_path)]
    rerun.run(every, command, tmp_path / "logs", workers=2)
    assert (tmp_path / "0").stat().st_mtime_ns >= (tmp_path / "1").stat().st_mtime_ns
    totals = re.findall(r"(\d+)/(\d+) ", capfd.readouterr().err)
    assert totals[-1] == ("3", "3") and {total for _, total in totals} == {"3"}


@pytest.fixture
def committed(tmp_path, monkeypatch):
    """committed(NAME, SECONDS, …) writes a record of passkeys among those that are committed."""
    monkeypatch.setattr(records, "RESULTS", tmp_path / "committed")

    def write(name, seconds, **asked):
        run = {"experiment": "passkey", "method": "yarn", "factor": 2, "options": {}, **asked}
        scores = {"by_length": [], "by_depth": []}
        file = records.RESULTS / "tiny" / "passkey" / f"{name}.json"
        records.write(file, run, scores=scores, seconds=seconds, of_machine={})

    return write


def test_what_committed_records_took_is_said_beforehand(tmp_path, committed):
    suite = Suite("tiny", base_models.MODELS["tiny"], tmp_path, tmp_path / "results")
    keys = suites.defaults("tiny", suite.model, "passkey", 2)["keys"]
    passkey = ["experiments.passkey"]
    ruler = ["experiments.ruler"]
    chains = [
        Chain("yarn_s=2", [passkey]),
        Chain("yarn_s=2_seed=0", [passkey]),
        Chain("yarn_s=2_seed=1", [passkey]),
        Chain("yarn_s=2_seed=2", [passkey, ruler]),
        Chain("yarn_s=2_seed=3", [passkey]),
    ]
    assert rerun.estimate(chains, suite, 2) == "5 chains, 2 at a time"
    committed("yarn_s=2", 3600, keys=keys)
    committed("yarn_s=2_seed=0", 10800, keys=keys, training={"seed": 0})
    committed("yarn_s=2_seed=1", 7200, keys=keys + 1, training={"seed": 1})  # asked something else
    committed("yarn_s=2_seed=2", 7200, keys=keys, training={"seed": 2})  # half of the chain
    assert re.search(r"2 of them took 2\.0 h", rerun.estimate(chains, suite, 2))
    assert re.search(r"2 of them took 4\.0 h", rerun.estimate(chains, suite, 1))


def test_a_rerun_that_is_killed_leaves_no_process(tmp_path):
    (tmp_path / "waits-0").touch()
    code = (
        "from experiments.rerun import *; run({0: Chain('a', [])}, "
        f"['tests.experiments.chain', {str(tmp_path)!r}], Path({str(tmp_path / 'logs')!r}), 1)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    until((tmp_path / "0.pids").exists)
    process = psutil.Process(int((tmp_path / "0.pids").read_text()))
    for child in process.children():
        child.kill()  # `sleep` is no chain's; what a chain starts ends with it, as torchrun does
    parent.kill()
    parent.wait()
    assert process.wait(30) is not None or not process.is_running()


def test_commands_run_in_order_and_only_of_ones_own_model_a_refusal_is_skipped(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    chain = Chain(
        "a", [["experiments.passkey", "--model", "nonesuch"], ["experiments.passkey", "--help"]]
    )
    (skipped,) = rerun.measure(chain, tmp_path, lenient=True)
    assert skipped.startswith("skipped the command passkey: ") and "nonesuch" in skipped
    assert "usage:" in capsys.readouterr().out
    with pytest.raises(InputError, match="nonesuch"):
        rerun.measure(chain, tmp_path)
    with pytest.raises(InputError, match="no-such-option"):
        rerun.measure(
            Chain("b", [["experiments.passkey", "--no-such-option"]]), tmp_path, lenient=True
        )


def test_records_stand_again_under_each_setting_of_the_same_pairs(tmp_path):
    def write(name, options, seed=None):
        training = {} if seed is None else {"training": {"seed": seed}}
        run = {"experiment": "perplexity", "method": "dprope", "factor": 2, "options": options}
        scores = {"by_length": [{"length": 2048}], "by_window": {}}
        file = tmp_path / "perplexity" / f"{name}.json"
        records.write(file, run | training, scores=scores, seconds=1.0, of_machine={})

    write("dprope_n-hat=44_s=2_seed=0", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2_seed=0_whole", {"n_hat": 44}, seed=0)
    write("dprope_n-hat=44_s=2", {"n_hat": 44})
    write("dprope_n-hat=44_s=2_seed=01", {"n_hat": 44}, seed=1)
    same = [
        ("perplexity", ("dprope", {"intervals": 180})),
        ("ruler", ("dprope", {"intervals": 180})),
    ]
    rerun.copy_to_equal_settings(Chain("dprope_n-hat=44_s=2_seed=0", [], same=same), tmp_path)
    copies = {
        file.stem: json.loads(file.read_text()) for file in tmp_path.glob("*/*intervals*.json")
    }
    assert set(copies) == {
        "dprope_intervals=180_s=2_seed=0",
        "dprope_intervals=180_s=2_seed=0_whole",
    }
    assert all(
        record["same_selection_as"] == f"dprope_n-hat=44{name[20:]}"
        for name, record in copies.items()
    )


@pytest.fixture
def slurm(tmp_path):
    """slurm(SCRIPT) starts a task of slurm.sh with SCRIPT as .venv/bin/python; what is requeued
    goes to `requeued`."""

    def program(path, script):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    program(tmp_path / "bin" / "scontrol", 'echo "$@" >> requeued')
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "3",
    }

    def start(script, *arguments):
        program(tmp_path / ".venv" / "bin" / "python", script)
        return subprocess.Popen(["bash", SLURM, *arguments], cwd=tmp_path, env=environment)

    return start


def test_a_task_of_slurm_runs_its_chain_and_no_name_is_executed(slurm, tmp_path):
    name = "a$(touch x) `touch y`; touch z"
    assert slurm('printf "%s\\n" "$@" > arguments', "--model", name).wait() == 0
    assert (tmp_path / "arguments").read_text().splitlines() == [
        "-m",
        "experiments.rerun",
        "--model",
        name,
        "--chain",
        "3",
    ]
    assert not {"x", "y", "z", "requeued"} & {file.name for file in tmp_path.iterdir()}
    assert slurm("exit 2", "--model", name).wait() == 2 and not (tmp_path / "requeued").exists()


def test_a_task_of_slurm_is_queued_again_near_its_limit_and_if_it_needs_a_checkpoint(
    slurm, tmp_path
):
    assert slurm("exit 75").wait() == os.EX_TEMPFAIL  # what rerun --chain exits with then
    assert (tmp_path / "requeued").read_text() == "requeue 7\n"
    task = slurm("sleep 60 & echo $! > child; touch begun; wait")
    until((tmp_path / "begun").exists)
    task.send_signal(signal.SIGTERM)  # a preemption, which gives it time until it is killed
    task.send_signal(signal.SIGUSR2)
    task.wait(30)
    assert (tmp_path / "requeued").read_text() == "requeue 7\n" * 2
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)  # Slurm ends what is left
