"""Chains of commands side by side: one a core, or one a GPU. What trains takes all GPUs, and nothing runs beside it."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path

from tqdm import tqdm

from core import files
from core.errors import InputError
from experiments.lab import cli, records
from experiments.lab.plan import Chain, Command

# What the commands import, seven seconds a process if each did it anew.
LIBRARIES = ("transformers.models.llama.modeling_llama", "experiments.finetune", "experiments.passkey", "lm_eval.tasks")

FAILED = 3  # exit status of a command that did not end for want of a fitting model or data, which can be passed over


@dataclass(frozen=True)
class Machine:
    """What commands run on.

    Attributes:
        gpus: their numbers, as CUDA_VISIBLE_DEVICES has them; empty on a machine without any.
        workers: commands at a time.
        gpus_each: that each command has.
    """

    gpus: tuple[str, ...]
    workers: int
    gpus_each: int = 1

    @classmethod
    def found(cls, workers: int | None = None, gpus_each: int = 1) -> Machine:
        """This one: a command a core, or for each GPU (or `gpus_each` of them), unless `workers` says otherwise.

        Raises:
            InputError: it has fewer GPUs than a command needs.
        """
        import torch

        count = torch.cuda.device_count()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
        gpus = tuple(visible.split(",")[:count]) if count else ()
        if gpus_each > max(len(gpus), 1):
            raise InputError(f"there are {len(gpus)} GPUs here; give --tensor-parallel as many at most.")
        side_by_side = len(gpus) // gpus_each if gpus else os.cpu_count() or 1
        return cls(gpus, min(workers, side_by_side) if workers and gpus else workers or side_by_side, gpus_each)

    @property
    def slots(self) -> list[tuple[str, ...]]:
        """The GPUs of each of the commands that run at a time."""
        return [self.gpus[i * self.gpus_each : (i + 1) * self.gpus_each] for i in range(self.workers)]

    @property
    def whole(self) -> Machine:
        """All of it for one command at a time."""
        return Machine(self.gpus, 1, max(len(self.gpus), 1))

    @property
    def single(self) -> Machine:
        """One command at a time."""
        return Machine(self.gpus, 1, self.gpus_each)


def run(chains: Sequence[Chain], machine: Machine, logs: Path, lenient: bool = False) -> list[tuple[str, str]]:
    """Run the chains side by side, the commands of each one after the other.

    With several GPUs what trains runs first, one after the other on all of them.

    Args:
        lenient: a command that refuses its input is skipped.

    Returns:
        the skipped commands, each its experiment and the reason.

    Raises:
        InputError: a command failed; those under way are stopped.
    """
    if len(machine.gpus) < 2:
        return _run(chains, machine, logs, lenient)
    training = [Chain(chain.name, chain.commands[: chain.trains]) for chain in chains]
    others = [Chain(chain.name, chain.commands[chain.trains :]) for chain in chains]
    return _run(training, machine.whole, logs, lenient) + _run(others, machine, logs, lenient)


def _run(chains: Sequence[Chain], machine: Machine, logs: Path, lenient: bool) -> list[tuple[str, str]]:
    """One thread starts and waits: starting a process also asks multiprocessing how its others have ended, and of two
    threads that ask of the same one, the second is told that it failed."""
    waiting = [(chain, chain.commands) for chain in reversed(chains) if chain.commands]
    if not waiting:
        return []
    logs.mkdir(parents=True, exist_ok=True)
    free = machine.slots[: max(min(machine.workers, len(waiting)), 1)]
    threads = max((os.cpu_count() or 1) // len(free), 1)
    # A process that has looked at its GPUs cannot be copied, so with some each command imports everything itself.
    context = multiprocessing.get_context("spawn" if machine.gpus else "forkserver")
    context.set_forkserver_preload([] if machine.gpus else list(LIBRARIES))
    running, skipped = {}, []
    with tqdm(total=sum(len(commands) for _, commands in waiting), unit="command", smoothing=0) as bar:
        try:
            while waiting or running:
                while waiting and free:
                    (chain, commands), gpus = waiting.pop(), free.pop()
                    log = logs / f"{chain.name}.log"
                    process = context.Process(target=_command, args=(commands[0], log, threads, gpus))
                    process.start()
                    running[process.sentinel] = process, log, chain, commands, gpus
                for sentinel in connection.wait(list(running)):
                    process, log, chain, (command, *rest), gpus = running.pop(sentinel)
                    process.join()
                    free.append(gpus)
                    if process.exitcode:
                        *_, last = [
                            "no output",
                            *log.read_text(encoding="utf-8", errors="replace").strip().splitlines(),
                        ]
                        reason = last.removeprefix("error: ")
                        if not (lenient and process.exitcode == 2 and reason != last):
                            raise InputError(f"{command[0]} failed ({reason}); see {log}.")
                        skipped.append((command[0].removeprefix("experiments."), reason))
                    if rest:
                        waiting.append((chain, rest))
                    bar.set_postfix_str(chain.name, refresh=False)
                    bar.update()
        finally:
            for process, *_ in running.values():
                process.terminate()
    return skipped


def _command(command: Command, log: Path, threads: int, gpus: Sequence[str]) -> None:
    """What `python -m COMMAND` does, in this process; it ends when the one that started it does."""
    cli.end_with_parent()
    tqdm.set_lock(threading.RLock())  # else all commands share one, which stays locked where a kill meets its holder
    with open(log, "a", encoding="utf-8") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    os.environ |= {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    import torch

    from experiments.lab.training import launch

    torch.set_num_threads(threads)
    module, *arguments = command
    launch.program, sys.argv = module, [module, *arguments]
    os.chdir(records.ROOT)
    cli.run(importlib.import_module(module).main, otherwise=FAILED)


def share(chain: Chain, folder: Path) -> None:
    """Write a chain's records again for its twins, the settings that select the same pairs and so are the same model.

    Args:
        folder: the scale's records. What was not measured is not shared.
    """
    for experiment, (method, options) in chain.twins:
        for file in sorted((folder / experiment).glob("*.json")):
            record = records.read(file) if file.stem.startswith(chain.name) else {}
            if not record or records.run_of(record) != chain.name:
                continue
            same = {"method": method, "options": options, "same_selection_as": file.stem}
            twin = records.run_of(record | same) + file.stem.removeprefix(chain.name)
            files.write_json(file.with_name(f"{twin}.json"), record | same)
