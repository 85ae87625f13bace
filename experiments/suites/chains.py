"""Run chains of commands: side by side on a CPU; on GPUs one after the other, each command on all
of them.

A chain is a process, which imports the libraries once: the same command line again, with --chain
and its number. So it is as a task of a cluster, too.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from core import files
from core.errors import InputError, NonFiniteError
from experiments.kit import command_line, records
from experiments.kit.command_line import SKIPPED

SKIPPED_COMMAND = f"{SKIPPED}the command "
Command = list[str]  # a module and its arguments
Setting = tuple[str, dict]  # a method and its options


@dataclass
class Chain:
    """Commands that run one after the other: they make a model and measure it.

    Attributes:
        name: the name of the log, and the beginning of the records' names if they belong to one
            run.
        commands: the commands.
        same: settings that give this same model, as (experiment, setting); its records hold for
            them too.
        needs: the checkpoint of another chain that it reads; empty if none.
    """

    name: str
    commands: list[Command]
    same: list[tuple[str, Setting]] = field(default_factory=list)
    needs: str = ""


def at_once(workers: int | None) -> int:
    """How many chains run side by side: `workers`, or one for each core, or one if there are
    GPUs."""
    import torch

    return workers or (1 if torch.cuda.is_available() else len(os.sched_getaffinity(0)))


def run(chains: Mapping[int, Chain], command: Sequence[str], logs: Path, workers: int) -> list[str]:
    """Run chains, `workers` at a time, each as `python -m COMMAND --chain NUMBER`, which calls
    :func:`measure`.

    Those that an earlier call ended are looked at last. So calls that are stopped again and again
    get on with the rest.

    Args:
        chains: by number.
        command: a module and its arguments.
        logs: the folder for a log of each chain.

    Returns:
        what was skipped, a sentence each.

    Raises:
        InputError: a chain failed; the running ones are stopped.
    """
    workers = max(min(workers, len(chains)), 1)
    threads = max(len(os.sched_getaffinity(0)) // workers, 1)
    path = os.pathsep.join(filter(None, [str(records.ROOT), os.environ.get("PYTHONPATH")]))
    environment = {
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
    }
    logs.mkdir(parents=True, exist_ok=True)
    running: list[subprocess.Popen] = []
    stopped = threading.Event()

    def ended(number: int) -> Path:
        return logs / f"{chains[number].name}.ended"

    def one(number: int) -> list[str]:
        if stopped.is_set():
            return []
        name = chains[number].name
        log = logs / f"{name}.log"
        with open(log, "ab") as out:
            begin = out.tell()
            process = subprocess.Popen(
                [sys.executable, "-m", *command, "--chain", str(number)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=os.environ | environment,
                preexec_fn=_end_with_parent,
            )
            running.append(process)
            if stopped.is_set():
                process.terminate()
            process.wait()
        output = log.read_bytes()[begin:].decode(errors="replace").splitlines()
        last = next((line for line in reversed(output) if line.strip()), "no output")
        if process.returncode and not (
            process.returncode == 1 and last.startswith(SKIPPED_COMMAND)
        ):
            stopped.set()
            raise InputError(f"{name} failed ({last.removeprefix('error: ')}); see {log}.")
        ended(number).touch()
        return [line for line in output if line.startswith(SKIPPED)]

    skipped: list[str] = []
    with ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(one, number)
            for number in sorted(chains, key=lambda number: ended(number).exists())
        ]
        try:
            for future in tqdm(
                as_completed(futures), total=len(futures), unit="model", smoothing=0
            ):
                skipped += future.result()
        finally:
            stopped.set()
            for process in running:
                process.terminate()
    return skipped


def measure(chain: Chain, folder: Path, lenient: bool = False) -> list[str]:
    """Run the commands of a chain in this process; where there are several GPUs, in one process on
    each.

    Args:
        folder: the model's records.
        lenient: skip a command that refuses its input.

    Returns:
        what was skipped, a sentence each.
    """
    import torch

    from experiments.training import launch

    skipped = []
    for module, *arguments in chain.commands:
        try:
            if torch.cuda.device_count() > 1:
                if status := launch.on_all_gpus(module, arguments):
                    sys.exit(status)
                continue
            sys.argv = [module, *arguments]
            importlib.import_module(module).main()
        except SystemExit as end:
            if end.code:
                raise
        except (InputError, NonFiniteError) as error:
            if not lenient or isinstance(error, command_line.UsageError):
                raise
            skipped.append(f"{SKIPPED_COMMAND}{module.removeprefix('experiments.')}: {error}")
    copy_to_equal_settings(chain, folder)
    return skipped


def copy_to_equal_settings(chain: Chain, folder: Path) -> None:
    """Copy a chain's records for `chain.same`: settings that select the same pairs and so give the
    same model.

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


def _end_with_parent() -> None:
    """In a chain's process: a rerun that is killed leaves none behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
