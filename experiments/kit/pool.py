"""Run chains of commands side by side: one per core, or one per GPU. Training takes all GPUs and runs alone."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from core import files
from core.errors import InputError
from experiments.kit import command_line, records

if TYPE_CHECKING:
    from experiments.kit.deadline import Deadline

# What the commands import; imported once, because it would take seven seconds in each process.
LIBRARIES = ("transformers.models.llama.modeling_llama", "experiments.finetune", "experiments.passkey", "lm_eval.tasks")

Command = list[str]  # a module and its arguments
Setting = tuple[str, dict]  # a method and its options

SKIPPED = "skipped "  # the beginning of a line in which a command says what it leaves out
FAILED = 3  # exit status of a failure that may not be skipped; one because the model or the data do not fit is 2


@dataclass
class Chain:
    """Commands that run one after the other: they make a model and measure it.

    Attributes:
        name: the name of the log, and the beginning of the records' names if they belong to one run.
        commands: the commands.
        trains: how many of the first commands train.
        same: settings that give this same model, as (experiment, setting); its records hold for them too.
    """

    name: str
    commands: list[Command]
    trains: int = 0
    same: list[tuple[str, Setting]] = field(default_factory=list)


@dataclass(frozen=True)
class Machine:
    """The machine that commands run on.

    Attributes:
        gpus: the GPUs' numbers as in CUDA_VISIBLE_DEVICES; empty if there are none.
        workers: how many commands run at a time.
    """

    gpus: tuple[str, ...]
    workers: int

    @classmethod
    def found(cls, workers: int | None = None) -> Machine:
        """This machine, with one command per core, or per GPU if there are any, unless `workers` says otherwise."""
        import torch

        count = torch.cuda.device_count()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
        gpus = tuple(visible.split(",")[:count]) if count else ()
        if gpus:
            return cls(gpus, min(workers or len(gpus), len(gpus)))
        return cls(gpus, workers or len(os.sched_getaffinity(0)))

    @property
    def slots(self) -> list[tuple[str, ...]]:
        """The GPUs for each command that runs at the same time."""
        return [self.gpus[i : i + 1] for i in range(self.workers)]

    @property
    def single(self) -> Machine:
        """The machine with one command at a time."""
        return Machine(self.gpus, 1)


def run(
    chains: Sequence[Chain], machine: Machine, logs: Path, lenient: bool = False, deadline: Deadline | None = None
) -> list[tuple[str, str]]:
    """Run the chains side by side; the commands of a chain run one after the other.

    With several GPUs, all training runs first, one command after the other on all GPUs.

    Args:
        lenient: skip a command that refuses its input.
        deadline: start nothing that would not end by then, and stop there what is still running.

    Returns:
        the experiment of each skipped command, or the experiment and what the command itself skipped; and the reason.

    Raises:
        InputError: a command failed; the running ones are stopped.
    """
    if deadline:
        chains = [deadline.to_do(chain) for chain in chains]
    if len(machine.gpus) < 2:
        return _run(chains, machine.slots, logs, lenient, deadline)
    training = [Chain(chain.name, chain.commands[: chain.trains]) for chain in chains]
    others = [Chain(chain.name, chain.commands[chain.trains :]) for chain in chains]
    skipped = _run(training, [machine.gpus], logs, lenient, deadline)
    return skipped + _run(others, machine.slots, logs, lenient, deadline)


def _run(
    chains: Sequence[Chain], slots: Sequence[tuple[str, ...]], logs: Path, lenient: bool, deadline: Deadline | None
) -> list[tuple[str, str]]:
    """Start and await the processes, in one thread.

    Starting a process makes multiprocessing collect the exit status of the others. If two threads did this, the second
    to ask about a process would be told that it failed.

    Args:
        slots: the GPUs for each command that runs at the same time.
    """
    waiting = [(chain, chain.commands) for chain in reversed(chains) if chain.commands]
    if not waiting:
        return []
    logs.mkdir(parents=True, exist_ok=True)
    free = list(slots[: len(waiting)])
    threads = max(len(os.sched_getaffinity(0)) // len(free), 1)
    # A process that has used its GPUs cannot be forked, so with GPUs each command imports everything itself.
    on_gpu = any(slots)
    context = multiprocessing.get_context("spawn" if on_gpu else "forkserver")
    context.set_forkserver_preload([] if on_gpu else list(LIBRARIES))
    running, skipped = {}, []
    with tqdm(total=sum(len(commands) for _, commands in waiting), unit="command", smoothing=0) as bar:
        try:
            while waiting or running:
                while waiting and free:
                    chain, commands = waiting.pop()
                    # A model is made only if there is time to measure it.
                    together = chain.trains + 1 if commands is chain.commands else 1
                    if deadline and not deadline.allows(commands[:together]):
                        continue
                    gpus = free.pop()
                    log = logs / f"{chain.name}.log"
                    begin = log.stat().st_size if log.exists() else 0
                    process = context.Process(target=_command, args=(commands[0], log, threads, gpus))
                    process.start()
                    running[process.sentinel] = process, log, begin, chain, commands, gpus, time.monotonic()
                if not running:  # there was no time for what waited
                    break
                ended = connection.wait(list(running), deadline and deadline.left)
                if running and not ended:  # the time is over
                    break
                for sentinel in ended:
                    process, log, begin, chain, (command, *rest), gpus, started = running.pop(sentinel)
                    process.join()
                    free.append(gpus)
                    said = log.read_bytes()[begin:].decode(errors="replace").splitlines() if log.exists() else []
                    parts = (line.removeprefix(SKIPPED).partition(": ") for line in said if line.startswith(SKIPPED))
                    skipped += [(what, reason) for what, _, reason in parts]
                    if process.exitcode:
                        last = next((line for line in reversed(said) if line.strip()), "no output")
                        reason = last.removeprefix("error: ")
                        if not (lenient and process.exitcode == 2 and reason != last):
                            raise InputError(f"{command[0]} failed ({reason}); see {log}.")
                        skipped.append((command[0].removeprefix("experiments."), reason))
                    elif deadline:
                        deadline.note(command, time.monotonic() - started, said)
                    if rest:
                        waiting.append((chain, rest))
                    bar.set_postfix_str(chain.name, refresh=False)
                    bar.update()
        finally:
            for process, *_ in running.values():
                process.terminate()
    return skipped


def _command(command: Command, log: Path, threads: int, gpus: Sequence[str]) -> None:
    """Do what `python -m COMMAND` does, in this process, which ends when its parent does."""
    command_line.end_with_parent()
    tqdm.set_lock(threading.RLock())  # a lock shared by all commands would stay locked if its holder were killed
    with open(log, "a", encoding="utf-8") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    os.environ |= {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    import torch

    from experiments.training import launch

    torch.set_num_threads(threads)
    module, *arguments = command
    launch.program, sys.argv = module, [module, *arguments]
    os.chdir(records.ROOT)
    command_line.run(importlib.import_module(module).main, otherwise=FAILED)


def share(chain: Chain, folder: Path) -> None:
    """Copy a chain's records for `chain.same`: settings that select the same pairs and so give the same model.

    Args:
        folder: the model's records. Experiments without a record are left out.
    """
    for experiment, (method, options) in chain.same:
        for file in sorted((folder / experiment).glob("*.json")):
            record = records.read(file) if file.stem.startswith(chain.name) else {}
            if not record or records.run_of(record) != chain.name:
                continue
            same = {"method": method, "options": options, "same_selection_as": file.stem}
            twin = records.run_of(record | same) + file.stem.removeprefix(chain.name)
            files.write_json(file.with_name(f"{twin}.json"), record | same)
