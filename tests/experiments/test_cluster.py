"""A suite as jobs: by submitit's executors, by the script for sbatch, and by Slurm itself where it runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from argparse import Namespace

import pytest

from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.base_models.model import Model
from experiments.kit.pool import Chain
from experiments.suites import cluster
from experiments.suites.commands import Suite
from tests.models import checkpoint

GIVEN = Namespace(
    cluster="local", gpus=8, nodes=1, time=1, partition="big", account=None, sbatch=["mem=5G", "contiguous"]
)
# What stands for `experiments.rerun` in a job: it notes its name; "a.train" is preempted once, as Slurm does it.
JOB = """
import os, psutil, signal, sys, time
file, job = sys.argv[1], sys.argv[-1]
open(file, "a").write(job + "\\n")
if job == "a.train" and open(file).read().count(job) == 1:
    for one in (signal.SIGTERM, signal.SIGUSR2):
        for process in (os.getpid(), os.getppid()):
            os.kill(process, one)
    time.sleep(60)
sys.exit(job == 'c')
"""
BEFORE, AFTER = Chain("texts", [["x", "write"]]), Chain("time", [["x", "time"]])
A = Chain("a", [["experiments.finetune", "--seed", "0"], ["x", "a 1"], ["x", "a 2"]], trains=1)
B = Chain("b", [["x", "b"]])


@pytest.fixture
def suite(tmp_path):
    model = Model("mine", "mine", RopeGeometry(64, 1e4, 1024))
    return Suite("mine", model, tmp_path / "out", tmp_path / "out" / "results")


def test_a_chain_is_a_training_and_after_it_what_measures(suite):
    first, train, a, b, last = cluster.jobs([BEFORE], [A, B], [AFTER])
    assert [job.name for job in (first, train, a, b, last)] == ["texts", "a.train", "a", "b", "time"]
    assert [len(job.chain.commands) for job in (train, a, b)] == [1, 2, 1]
    assert [job.needs for job in (first, train, a, b)] == [(), ("texts",), ("a.train",), ("texts",)]
    assert set(last.needs) == {"texts", "a.train", "a", "b"}
    assert [job.gpus(8) for job in (first, train, a)] == [1, 8, 1] and not train.gpus(0) and not a.gpus(0)


def test_what_is_done_is_not_submitted_again_until_its_records_are_gone(suite):
    found = cluster.jobs([], [A, B], [])
    record = suite.results / "mine" / "x" / "a.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    found[1].chain.commands[0][0] = "experiments.x"
    for job in found[:2]:
        cluster.finish(job, suite)
    assert [job.name for job in cluster.left(found, suite)] == ["b"]
    record.unlink()
    assert [job.name for job in cluster.left(found, suite)] == ["a", "b"]
    found[0].chain.commands[0].append("--steps")  # another training than that which was done
    assert [job.name for job in cluster.left(found, suite)] == ["a.train", "a", "b"]
    cluster.finish(found[1], suite)  # all of it is measured
    assert [job.name for job in cluster.left(found, suite)] == ["b"]


@pytest.mark.parametrize("executor", ["local", "debug"])
def test_jobs_run_in_order_and_a_preempted_one_goes_on(suite, tmp_path, executor):
    pytest.importorskip("submitit")
    (tmp_path / "job.py").write_text(JOB if executor == "local" else JOB.replace("a.train", "none"))
    command = [sys.executable, str(tmp_path / "job.py"), str(tmp_path / "ran")]
    found = cluster.jobs([], [A, B, Chain("c", [["x", "c"]])] if executor == "local" else [A, B], [AFTER])
    if executor == "local":
        with pytest.raises(InputError, match=r"the job c failed: see \S+\.err"):
            cluster.submit(found, suite, GIVEN, command, executor)
    else:
        assert not cluster.submit(found, suite, GIVEN, command, executor)  # no job has noted that it has ended well
    ran = (tmp_path / "ran").read_text().split()
    assert ran == (["a.train", "a.train", "a", "b", "c"] if executor == "local" else ["a.train", "a", "b", "time"])


def test_what_is_missing_is_said_in_one_sentence(suite, monkeypatch):
    pytest.importorskip("submitit")
    found = cluster.jobs([], [B], [])
    monkeypatch.setenv("PATH", "")
    for name, given, said in (
        ("slurm", GIVEN, "no sbatch"),
        ("local", Namespace(**vars(GIVEN) | {"nodes": 2}), "--nodes"),
    ):
        with pytest.raises(InputError, match=said):
            cluster.submit(found, suite, given, [], name)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r"pip install '\.\[cluster\]'"):
        cluster.submit(found, suite, GIVEN, [], "local")


def test_jobs_measure_what_a_rerun_on_one_machine_does(forked, call, tmp_path):
    checkpoint(tmp_path / "mine", max_position_embeddings=256)
    wanted = ["--experiments", "passkey", "--methods", "pi", "--workers", 1]

    def rerun(output, *more):
        status, out, err = call("rerun", "--model", tmp_path / "mine", "--output", tmp_path / output, *wanted, *more)
        assert status == 0, err
        return out

    rerun("pool")
    assert rerun("jobs", "--cluster", "local", "--list").splitlines()[-1] == "1 to submit, 0 queued, 0 done"
    assert "skipped passkey 128: " in rerun("jobs", "--job", "pi_s=2")
    assert rerun("jobs", "--cluster", "local", "--list").splitlines() == ["0 to submit, 0 queued, 1 done"]
    assert same_records(tmp_path / "pool", tmp_path / "jobs") == 1
    status, _, err = call("rerun", "--model", tmp_path / "mine", "--job", "pi_s=3")
    assert status == 2 and "no job 'pi_s=3'" in err


def same_records(one, another):
    """How many records two outputs have, which must agree in identity and scores."""
    count = 0
    for file in sorted((one / "results").glob("*/*/*.json")):
        first, second = (json.loads(there.read_text()) for there in (file, another / file.relative_to(one)))
        for record in (first, second):
            if file.parent.name == "finetune":
                del record["scores"]["tokens_per_second"]
        assert [first["identity"], first["scores"]] == [second["identity"], second["scores"]], file
        count += 1
    return count


SBATCH = """#!/bin/bash
echo "$@" >> {told}/sbatch
array=$(grep -oP '(?<=--array=)\\S+' <<< "$*")
for task in ${{array//,/ }}; do
  SLURM_ARRAY_TASK_ID=$task SLURM_JOB_ID=70 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=n[1-2] bash "${{@: -2}}" >&2
done
wc -l < {told}/sbatch
"""


def test_the_script_for_sbatch_submits_arrays_and_runs_their_tasks(suite, tmp_path, monkeypatch):
    """With stand-ins for Slurm's commands, the first of which runs all tasks of an array at once."""
    (tmp_path / "bin").mkdir()
    for name, text in {
        "sbatch": SBATCH.format(told=tmp_path),
        "srun": f'#!/bin/bash\necho "$@" >> {tmp_path}/srun\n',
        "scontrol": f'#!/bin/bash\necho "$@" >> {tmp_path}/scontrol\necho n1\n',
    }.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    told = "if job == 'b': psutil.Process().parent().parent().send_signal(signal.SIGUSR2)\nsys.exit(job == 'c')"
    (tmp_path / "job.py").write_text(JOB.replace("a.train", "none").replace("sys.exit(job == 'c')", told))
    command = [sys.executable, str(tmp_path / "job.py"), str(tmp_path / "it's")]
    found = cluster.jobs([BEFORE], [A, B, Chain("c", [["x", "c"]])], [AFTER])
    for job in found[-2:-1]:
        cluster.finish(job, suite)
    given = Namespace(**vars(GIVEN) | {"nodes": 2})
    (tmp_path / "suite.sh").write_text(cluster.script(found, suite, given, command))
    subprocess.run(["bash", str(tmp_path / "suite.sh")], check=True)
    assert (tmp_path / "it's").read_text().split() == ["texts", "a.train", "a", "b", "time"]
    submitted = [line.split() for line in (tmp_path / "sbatch").read_text().splitlines()]
    names, after = zip(*[(line[1], [word for word in line if "dependency" in word]) for line in submitted])
    assert [name.split(".")[-1] for name in names] == ["first", "train", "trained", "untrained", "last"]
    wanted = [[], ["afterok:1"], ["aftercorr:2"], ["afterok:1"], ["afterok:1:2:3:4"]]
    assert after == tuple([f"--dependency={one}" for one in ones] for ones in wanted)
    assert [("--gpus-per-node=8" in line, "--nodes=2" in line) for line in submitted] == [
        (n == 1, n == 1) for n in range(5)
    ]
    assert "requeue 70" in (tmp_path / "scontrol").read_text()  # by the batch shell, which alone is told of its end
    (launched,) = (tmp_path / "srun").read_text().splitlines()
    assert re.search(r"--nnodes 2 --nproc-per-node 8 .* n1:20070 -m experiments.finetune --seed 0", launched)
    text = (tmp_path / "suite.sh").read_text()
    assert all(
        f"\n#SBATCH --{line}\n" in text for line in ("partition=big", "mem=5G", "contiguous", "requeue", "time=60")
    )


SLURM = shutil.which("sbatch") and not subprocess.run(["sinfo"], capture_output=True).returncode


@pytest.mark.skipif(not SLURM, reason="there is no Slurm")
def test_slurm_gives_the_records_of_one_machine(call, tmp_path):
    """Minutes of one node: a part of tiny's suite that generates, trains and measures."""
    command = [
        "rerun",
        "--model",
        "tiny",
        "--quick",
        "--only",
        "trained",
        "--methods",
        "pi",
        "--experiments",
        "passkey",
    ]
    assert call(*command, "--output", tmp_path / "pool")[0] == 0
    submit = [*command, "--output", tmp_path / "slurm", "--cluster", "slurm", "--gpus", 0]
    assert call(*submit)[1].splitlines()[-1] == "0 to submit, 5 queued, 0 done"
    end = time.monotonic() + 900
    while not (said := call(*submit)[1]).startswith("0 to submit, 0 queued, 5 done"):
        assert time.monotonic() < end and said.startswith("0 to submit"), said
        time.sleep(5)
    assert same_records(tmp_path / "pool", tmp_path / "slurm") == 4
