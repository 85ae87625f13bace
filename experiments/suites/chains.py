"""Run chains of commands: side by side on a CPU; on GPUs one after the other, each command on all of them.

A chain runs in a process of its own, which imports the libraries once: `python -m experiments.suites.chains`.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tqdm import tqdm

from core import files
from core.errors import InputError, NonFiniteError
from experiments.kit import command_line, records
from experiments.kit.command_line import SKIPPED

Command = list[str]  # a module and its arguments
Setting = tuple[str, dict]  # a method and its options


@dataclass
class Chain:
    """Commands that run one after the other: they make a model and measure it.

    Attributes:
        name: the name of the log, and the beginning of the records' names if they belong to one run.
        commands: the commands.
        same: settings that give this same model, as (experiment, setting); its records hold for them too.
    """

    name: str
    commands: list[Command]
    same: list[tuple[str, Setting]] = field(default_factory=list)


def run(chains: Sequence[Chain], logs: Path, workers: int | None = None, lenient: bool = False) -> list[str]:
    """Run the chains, `workers` at a time; by default one for each core, or one if there are GPUs.

    Args:
        lenient: skip a command that refuses its input.

    Returns:
        what was skipped, a sentence each.

    Raises:
        InputError: a command failed; the running ones are stopped.
    """
    import torch

    cores = len(os.sched_getaffinity(0))
    workers = max(min(workers or (1 if torch.cuda.is_available() else cores), len(chains)), 1)
    threads = {"OMP_NUM_THREADS": str(max(cores // workers, 1)), "TOKENIZERS_PARALLELISM": "false"}
    logs.mkdir(parents=True, exist_ok=True)
    running: list[subprocess.Popen] = []

    def one(chain: Chain) -> list[str]:
        log = logs / f"{chain.name}.log"
        with open(log, "ab") as out:
            begin, asked = out.tell(), json.dumps([asdict(chain), lenient])
            process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=out, stderr=out, text=True,
                env=os.environ | threads, cwd=records.ROOT, preexec_fn=_end_with_parent,
            )  # fmt: skip
            running.append(process)
            process.communicate(asked)
        said = log.read_bytes()[begin:].decode(errors="replace").splitlines()
        if process.returncode:
            last = next((line for line in reversed(said) if line.strip()), "no output")
            raise InputError(f"{chain.name} failed ({last.removeprefix('error: ')}); see {log}.")
        return [line for line in said if line.startswith(SKIPPED)]

    skipped: list[str] = []
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(one, chain) for chain in chains if chain.commands]
        try:
            for future in tqdm(as_completed(futures), total=len(futures), unit="model", smoothing=0):
                skipped += future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.terminate()
    return skipped


def measure(chain: Chain, lenient: bool = False) -> None:
    """Run the commands of a chain in this process; where there are several GPUs, in one process on each."""
    import torch

    from experiments.training import launch

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
            print(f"{SKIPPED}{module.removeprefix('experiments.')}: {error}", flush=True)


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


def _end_with_parent() -> None:
    """In a chain's process: a rerun that is killed leaves none behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    asked, lenient = json.load(sys.stdin)
    command_line.run(lambda: measure(Chain(**asked), lenient))
