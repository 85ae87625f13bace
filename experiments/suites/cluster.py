"""A suite as jobs of a Slurm cluster: submitted through submitit, or written as a script that sbatch takes.

A chain is two jobs: one trains, and one measures the result when the first has ended well. A job is the command that
submitted it with `--job NAME`, so it runs, logs and skips as a rerun on one machine does. After its time limit or a
preemption it is queued again, and its commands go on where they were.
"""

from __future__ import annotations

import argparse
import glob
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core import files
from core.errors import InputError
from experiments.kit import command_line, records
from experiments.kit.command_line import count, none_or_more, number, option
from experiments.kit.pool import Chain
from experiments.suites.commands import Suite

TIMEOUTS = 1000  # how often a job may reach its time limit; of limits of minutes, submitit counts preemptions, too
NOTICE = 120  # seconds before its time limit at which a job is told of it


@dataclass(frozen=True)
class Job:
    """What runs as one job.

    Attributes:
        kind: "first", "train", "measure", or "last", which is alone on its node because it measures time.
        needs: the names of the jobs that must have ended well before it begins.
    """

    name: str
    kind: str
    chain: Chain
    needs: tuple[str, ...] = ()

    def gpus(self, asked: int) -> int:
        """Training takes all GPUs that are asked for, everything else at most one."""
        return asked if self.kind == "train" else min(asked, 1)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --cluster and what a job is given."""
    group = parser.add_argument_group("on a cluster")
    where = "submit a job for each training and for what measures it; `local` runs the same jobs here, without Slurm"
    group.add_argument("--cluster", choices=("slurm", "local"), help=where)
    shown = "what --list prints: commands, or a script for Slurm that needs no submitit (default commands)"
    group.add_argument("--format", choices=("commands", "sbatch"), default="commands", help=shown)
    option(group, "--gpus", none_or_more, "N", "GPUs of a training on each node; other jobs have one, or none if 0", 8)
    option(group, "--nodes", count, "N", "nodes of a training; several with --format sbatch only", 1)
    option(group, "--time", number, "HOURS", "time limit of a job, which is then queued again and goes on", 24)
    option(group, "--partition", str, "NAME", "Slurm's partition")
    option(group, "--account", str, "NAME", "whose account it is charged to")
    others = "any other options of sbatch, such as cpus-per-gpu=8 mem-per-gpu=60G"
    group.add_argument("--sbatch", nargs="+", metavar="KEY=VALUE", default=[], help=others)
    option(group, "--job", str, "NAME", "run this job here, as a cluster does")


def jobs(before: list[Chain], chains: list[Chain], after: list[Chain]) -> list[Job]:
    """The jobs of a suite, each after those that it needs."""
    found = [Job(chain.name, "first", chain) for chain in before]
    first = tuple(job.name for job in found)
    for chain in chains:
        needs, train = first, Chain(chain.name, chain.commands[: chain.trains], chain.trains, chain.same)
        if train.commands:
            found.append(Job(f"{chain.name}.train", "train", train, needs))
            needs = (found[-1].name,)
        if measured := chain.commands[chain.trains :]:
            found.append(Job(chain.name, "measure", Chain(chain.name, measured, same=chain.same), needs))
    every = tuple(job.name for job in found)
    return found + [Job(chain.name, "last", chain, every) for chain in after]


def finish(job: Job, suite: Suite) -> None:
    """Note that a job has ended well, and what it made."""
    files.write_json(_note(job, suite), {"commands": job.chain.commands, "made": sorted(_made(job, suite))})


def left(found: list[Job], suite: Suite) -> list[Job]:
    """The jobs that have not ended well, or whose records are gone; no training of which all is measured."""

    def done(job: Job) -> bool:
        note = _note(job, suite)
        noted = files.read_json(note, "remove it") if note.is_file() else {"commands": None, "made": []}
        return noted["commands"] == job.chain.commands and all(map(os.path.exists, noted["made"]))

    wanted = [job for job in found if not done(job)]
    needed = {name for job in wanted for name in job.needs}
    return [job for job in wanted if job.kind != "train" or job.name in needed]


def _note(job: Job, suite: Suite) -> Path:
    return suite.output / "jobs" / f"{job.name}.json"


def _made(job: Job, suite: Suite) -> Iterator[str]:
    """The records of a job's commands, and what they wrote elsewhere."""
    for module, *options in job.chain.commands:
        experiment = module.split(".")[-1]
        of_run = f"*{glob.escape(job.chain.name)}*.json" if experiment != job.chain.name else "*.json"
        yield from map(str, records.folder(suite.results, suite.name, experiment).glob(of_run))
        if "--output" in options:
            yield options[options.index("--output") + 1]


def _queued(suite: Suite) -> dict[str, str]:
    """The id of each of the suite's jobs that Slurm holds, by the job's name."""
    listed = subprocess.run(["squeue", "--me", "--noheader", "--format=%A %j"], capture_output=True, text=True)
    if listed.returncode:
        raise InputError(f"squeue failed ({listed.stderr.strip()}); give --cluster where Slurm's commands work.")
    lines = (line.split(" ", 1) for line in listed.stdout.splitlines())
    return {name.removeprefix(_prefix(suite)): number for number, name in lines if name.startswith(_prefix(suite))}


def _prefix(suite: Suite) -> str:
    """With what the names of this suite's jobs begin in the queue; those of one with other records begin otherwise."""
    return f"{suite.name}-{records.identity(places=[str(suite.output), str(suite.results)])[:6]}."


def told(found: list[Job], suite: Suite, given: argparse.Namespace) -> Iterator[str]:
    """A line for each job that would be submitted, then how many are queued and done."""
    wanted, ids = left(found, suite), _queued(suite) if given.cluster == "slurm" and shutil.which("squeue") else {}
    waiting = [job for job in wanted if job.name in ids]
    for job in (job for job in wanted if job not in waiting):
        needs = [one.name for one in wanted if one.name in job.needs]
        after = f", after {needs[0] if len(needs) == 1 else f'{len(needs)} others'}" if needs else ""
        yield f"{job.name}: commands: {len(job.chain.commands)}, GPUs: {job.gpus(given.gpus)}{after}"
    yield f"{len(wanted) - len(waiting)} to submit, {len(waiting)} queued, {len(found) - len(wanted)} done"


def submit(found: list[Job], suite: Suite, given: argparse.Namespace, command: list[str], cluster: str) -> bool:
    """Submit the jobs that are neither queued nor done; elsewhere than on Slurm, run them one after the other.

    Args:
        command: what each job runs, with --job.
        cluster: "slurm", or submitit's executors "local", a process on this machine, and "debug", this process.

    Returns:
        whether all is done.

    Raises:
        InputError: there is no submitit or no Slurm, Slurm refuses a job, or a job that ran here failed.
    """
    try:
        import submitit
        from submitit.core.utils import FailedJobError, UncompletedJobError
    except ImportError as error:
        what = "--cluster needs submitit: pip install '.[cluster]'; a script of --list --format sbatch does without"
        raise InputError(f"{what}.") from error
    slurm = cluster == "slurm"
    if slurm and not shutil.which("sbatch"):
        raise InputError("there is no sbatch here; give --cluster slurm where jobs are submitted, or --cluster local.")
    if given.nodes > 1:
        raise InputError("--cluster trains on one node; the script of --list --format sbatch trains on --nodes.")
    ids = _queued(suite) if slurm else {}
    for job in [job for job in left(found, suite) if job.name not in ids]:
        how: dict = {"name": _prefix(suite) + job.name, "timeout_min": _minutes(given)}
        if slurm:
            options = dict(_options(given)) | ({"exclusive": True} if job.kind == "last" else {})
            if needs := [ids[name] for name in job.needs if name in ids]:
                options["dependency"] = ":".join(["afterok", *needs])
            # Without the binding's end, the one process of a job would have one core.
            how |= {"slurm_additional_parameters": options, "slurm_srun_args": ["--cpu-bind=none"]}
            how |= {"slurm_signal_delay_s": NOTICE} | ({"gpus_per_node": n} if (n := job.gpus(given.gpus)) else {})
        limit = {"slurm_max_num_timeout": TIMEOUTS} if slurm else {}
        executor = submitit.AutoExecutor(suite.output / "jobs" / "%j", cluster=cluster, **limit)
        executor.update_parameters(**how)
        try:
            submitted = executor.submit(Command([*command, "--job", job.name]))
            ids[job.name] = submitted.job_id
            print(f"{submitted.job_id} {job.name}", flush=True)
            if not slurm:
                submitted.result()
        except (FailedJobError, UncompletedJobError) as error:
            reason = command_line.reason(error) if job.name not in ids else f"see {submitted.paths.stderr}"
            raise InputError(f"the job {job.name} failed: {reason}.") from error
    *_, summary = told(found, suite, given)
    print(summary)
    return not left(found, suite)


class Command:
    """A command as submitit runs it; after a preemption or its time limit it is queued again and runs once more."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __call__(self) -> None:
        # Slurm signals every process of a job, and only submitit is to answer. Children ignore what their parent did.
        subprocess.run(self.words, check=True, preexec_fn=_deaf)

    def checkpoint(self):
        import submitit

        return submitit.helpers.DelayedSubmission(self)


def _deaf() -> None:
    for one in (signal.SIGUSR2, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)


def _options(given: argparse.Namespace) -> Iterator[tuple[str, str | bool]]:
    """sbatch's options for every job; True is a flag."""
    yield from {"requeue": True, "kill-on-invalid-dep": "yes"}.items()
    yield from ((name, value) for name in ("partition", "account") if (value := getattr(given, name)))
    for stated in given.sbatch:
        key, _, value = stated.partition("=")
        yield key.lstrip("-"), value or True


SCRIPT = """\
#!/bin/bash
# `bash THIS_FILE` submits the suite of {name} to Slurm, as arrays with a task for each line below: a part of a chain.
# After a preemption or its time limit a task is queued again, and its commands go on where they were.
{options}
{lines}

if [ $# = 0 ]; then
  set -e
  submit() {{ sbatch --parsable --job-name="{name}.$1" --array="$2" "${{@:3}}" "$0" "$1"; }}
  mkdir -p {logs}
{submissions}
  exit
fi

launch() {{  # on each node, a process for each GPU; all ignore the notice of a preemption
  head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  srun --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 bash -c 'trap "" TERM; exec "$@"' launch \\
    {python} -m torch.distributed.run --signals-to-handle SIGINT --nnodes "$SLURM_JOB_NUM_NODES" \\
    --nproc-per-node {processes} --rdzv-backend c10d --rdzv-id "$SLURM_JOB_ID" \\
    --rdzv-endpoint "$head:$((20000 + SLURM_JOB_ID % 20000))" -m "$@"
}}
job() {{ {command} --job "$1"; }}
cd {here}
trap '' TERM
trap 'scontrol requeue "$SLURM_JOB_ID"' USR2
declare -n lines="$1"
(eval "${{lines[$SLURM_ARRAY_TASK_ID]}}") &
wait $!
"""


def script(found: list[Job], suite: Suite, given: argparse.Namespace, command: list[str]) -> str:
    """A bash script that submits what is not done as job arrays, and that is itself what each of their tasks runs."""
    number = {job.chain.name: count for count, job in enumerate(found)}
    wanted = left(found, suite)
    trains = {job.chain.name for job in wanted if job.kind == "train"}
    arrays = {name: [] for name in ("first", "train", "trained", "untrained", "last")}
    for job in wanted:
        name = {True: "trained", False: "untrained"}[job.chain.name in trains] if job.kind == "measure" else job.kind
        arrays[name].append(job)
    before = {"train": ["first"], "trained": ["train"], "untrained": ["first"], "last": list(arrays)[:-1]}
    lines, submissions = [], []
    for name, tasks in ((name, tasks) for name, tasks in arrays.items() if tasks):
        lines += [f"{name}[{number[job.chain.name]}]={shlex.quote(_line(job, given))}" for job in tasks]
        how = [f"--nodes={given.nodes if name == 'train' else 1}", *["--exclusive"] * (name == "last")]
        how += [f"--gpus-per-node={gpus}"] if (gpus := tasks[0].gpus(given.gpus)) else []
        if ids := [f"${one}_id" for one in before.get(name, []) if arrays[one]]:
            # What measures begins after the training of the same number.
            how.append(f"--dependency={'aftercorr' if name == 'trained' else 'afterok'}:{':'.join(ids)}")
        indices = ",".join(str(number[job.chain.name]) for job in tasks)
        submissions.append(f"  {name}_id=$(submit {name} {indices} {' '.join(how)})")
    logs = suite.output / "jobs"
    options = dict(_options(given)) | {"time": _minutes(given), "signal": f"B:USR2@{NOTICE}"}
    options |= {"open-mode": "append", "output": logs / "%x-%A_%a.log"}
    stated = (
        f"#SBATCH --{key}" + f"={shlex.quote(str(value))}" * (value is not True) for key, value in options.items()
    )
    return SCRIPT.format(
        name=suite.name,
        options="\n".join(stated),
        lines="\n".join(lines),
        submissions="\n".join(submissions),
        logs=shlex.quote(str(logs)),
        python=shlex.quote(sys.executable),
        command=shlex.join(command),
        processes=max(given.gpus, 1),
        here=shlex.quote(os.getcwd()),
    )


def _line(job: Job, given: argparse.Namespace) -> str:
    """What a task runs; over several nodes, a fine-tune is launched there first, and the job finds it done."""
    several = job.kind == "train" and given.nodes > 1
    launched = [
        ["launch", *words] for words in job.chain.commands if several and words[0] == records.program("finetune")
    ]
    return " && ".join(map(shlex.join, [*launched, ["job", job.name]]))


def _minutes(given: argparse.Namespace) -> int:
    return max(round(60 * given.time), 1)
