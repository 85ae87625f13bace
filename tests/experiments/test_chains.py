"""Chains: what runs beside what, what is skipped, what a kill leaves, and records that several
settings share."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

import records
from core.errors import InputError
from experiments import base_models, rerun, suites
from experiments.suites.suite import Chain, Suite
from records import ROOT
from tests.analysis.recorder import NOTHING
from tests.processes import until

SLURM = ROOT / "experiments/suites/slurm.sh"


@pytest.fixture
def run(tmp_path):
    """run(chains, workers) runs each as tests/experiments/chain.py does; returns what was
    skipped."""
    command = ["tests.experiments.chain", str(tmp_path)]
    return lambda chains, workers: rerun.run(chains, command, tmp_path / "logs", workers)


def test_each_chain_is_a_process_and_a_failure_says_where(run, tmp_path):
    every = {number: Chain(f"chain {number}", []) for number in (0, 1, 4)}
    (tmp_path / "skips-1").touch()
    skipped = [f"skipped {number}: too long" for number in every]
    assert sorted(run(every, workers=2)) == [*skipped, "skipped the command 1: refused"]
    failure = r"chain 1 failed \(number 1 is wrong\); see .*chain 1.log"
    (tmp_path / "fails-1").touch()
    with pytest.raises(InputError, match=failure):
        run(every, workers=1)
    assert (tmp_path / "4").read_text() == "done\n"  # after the failure nothing begins
    (tmp_path / "logs/chain 4.ended").unlink()  # as after a kill
    with pytest.raises(InputError, match=failure):
        run(every, workers=1)
    assert (tmp_path / "4").read_text() == "done\n" * 2  # what has not ended goes first


def test_a_chain_that_needs_another_comes_last_and_one_bar_counts_all(run, tmp_path, capfd):
    run({0: Chain("needing", [], needs="a checkpoint"), 1: Chain("a", [])}, workers=2)
    assert (tmp_path / "0").stat().st_mtime_ns >= (tmp_path / "1").stat().st_mtime_ns
    totals = re.findall(r"(\d+)/(\d+) ", capfd.readouterr().err)
    assert totals[-1] == ("2", "2")
    assert {total for _, total in totals} == {"2"}


def test_what_committed_records_took_is_said_beforehand(tmp_path, monkeypatch):
    """Two of five chains: one was asked something else, half of one and all of one are missing."""
    monkeypatch.setattr(records, "RESULTS", tmp_path / "committed")
    suite = Suite("tiny", base_models.MODELS["tiny"], tmp_path, tmp_path / "results")
    keys = suites.defaults("tiny", suite.model, "passkey", 2)["keys"]
    chains = [Chain("yarn_s=2", [["experiments.passkey"]])]
    chains += [Chain(f"yarn_s=2_seed={seed}", [["experiments.passkey"]]) for seed in range(4)]
    chains[3].commands.append(["experiments.ruler"])
    assert "5 chains" in rerun.estimate(chains, suite, 2)
    assert " h " not in rerun.estimate(chains, suite, 2)
    for name, hours, more in (
        ("yarn_s=2", 1, {"keys": keys}),
        ("yarn_s=2_seed=0", 3, {"keys": keys, "training": {"seed": 0}}),
        ("yarn_s=2_seed=1", 9, {"keys": keys + 1, "training": {"seed": 1}}),
        ("yarn_s=2_seed=2", 9, {"keys": keys, "training": {"seed": 2}}),
    ):
        run = {"experiment": "passkey", "method": "yarn", "factor": 2, "options": {}, **more}
        scores = NOTHING["passkey"]
        file = records.RESULTS / f"tiny/passkey/{name}.json"
        records.write(file, run, scores=scores, environment={"seconds": 3600 * hours})
    assert "2 of them took 2.0 h" in rerun.estimate(chains, suite, 2)
    assert "2 of them took 4.0 h" in rerun.estimate(chains, suite, 1)
    assert "2 of them took 4.0 h" in rerun.estimate(chains, replace(suite, quick=True), 1)
    like_yarn = [Chain("new_s=2", [["experiments.passkey"]])]
    assert "1.0 h" in rerun.estimate(like_yarn, replace(suite, methods=["new"]), 1)


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
    refused = ["experiments.passkey", "--model", "nonesuch"]
    chain = Chain("a", [refused, ["experiments.passkey", "--help"]])
    (skipped,) = rerun.measure(chain, lenient=True)
    assert skipped.startswith("skipped the command passkey: ")
    assert "nonesuch" in skipped
    assert "usage:" in capsys.readouterr().out
    with pytest.raises(InputError, match="nonesuch"):
        rerun.measure(chain)
    wrong = Chain("b", [["experiments.passkey", "--no-such-option"]])
    with pytest.raises(InputError, match="no-such-option"):
        rerun.measure(wrong, lenient=True)


@pytest.fixture
def slurm(tmp_path):
    """slurm(SCRIPT) starts a task of slurm.sh with SCRIPT as .venv/bin/python; what is requeued
    goes to `requeued`."""

    def program(path, script):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    program(tmp_path / "bin/scontrol", 'echo "$@" $(ls saved 2> /dev/null) >> requeued')
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",  # of the array's last task, both numbers are the same
        "SLURM_ARRAY_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_CPUS_PER_TASK": "64",
        "SLURM_GPUS_ON_NODE": "8",
    }

    def start(script, *arguments, **more):
        program(tmp_path / ".venv/bin/python", script)
        given = environment | more
        return subprocess.Popen(["bash", SLURM, *arguments], cwd=tmp_path, env=given)

    return start


def test_a_task_of_slurm_runs_its_chain_and_no_name_is_executed(slurm, tmp_path):
    name = "a$(touch x) `touch y`; touch z"
    assert slurm('printf "%s\\n" "$@" > arguments', "--model", name).wait() == 0
    given = (tmp_path / "arguments").read_text().splitlines()
    assert given == ["-m", "experiments.rerun", "--model", name, "--chain", "3"]
    assert not {"x", "y", "z", "requeued"} & {file.name for file in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "status, restarts, again",
    [(os.EX_TEMPFAIL, 3, True), (os.EX_TEMPFAIL, 1000, False), (2, 0, False)],
)
def test_a_task_of_slurm_that_needs_a_checkpoint_is_queued_again(
    slurm, tmp_path, status, restarts, again
):
    """Which rerun --chain says by its exit status; not without end."""
    assert slurm(f"exit {status}", SLURM_RESTART_COUNT=str(restarts)).wait() == status
    assert (tmp_path / "requeued").exists() == again


def test_a_task_of_slurm_is_queued_again_near_its_limit(slurm, tmp_path):
    """Alone of its array, and after the chain has saved what it has."""
    task = slurm("trap 'sleep 1; touch saved; exit 138' USR1; touch begun; sleep 60 & wait; wait")
    until((tmp_path / "begun").exists)
    task.send_signal(signal.SIGTERM)  # a preemption, which gives it time until it is killed
    task.send_signal(signal.SIGUSR2)
    task.wait(30)
    assert (tmp_path / "requeued").read_text() == "requeue 7_3 saved\n"


def test_a_task_of_slurm_shares_its_cores_among_gpus_and_takes_one_node(slurm, tmp_path):
    assert slurm("echo $OMP_NUM_THREADS > threads").wait() == 0
    assert (tmp_path / "threads").read_text() == "8\n"
    assert slurm("touch ran", SLURM_NNODES="2").wait() == 2
    assert not (tmp_path / "ran").exists()
