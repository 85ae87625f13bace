"""Measure everything of a scale anew: the fine-tunes of every method, all evaluations of all models, both ablations.

    python -m experiments.rerun --scale tiny            everything; the scale's suite in experiments/scales.py says what
    python -m experiments.rerun --scale tiny --quick    one seed and few samples of everything
    python -m experiments.rerun --scale tiny --list     what it would run

Records go to OUTPUT/results, checkpoints to OUTPUT/checkpoints, what each command prints to OUTPUT/logs. The commands
are those of the README, one process each (forked from one that has the libraries loaded already), as many at a time as
--workers; given again after a kill, each goes on where it was, and what is done is skipped.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import shlex
import sys
import threading
from multiprocessing import connection
from pathlib import Path

from tqdm import tqdm

from core.errors import InputError
from experiments import cli, records, scales
from experiments.plan import Chain, Command, Plan

# What the commands import, seven seconds a process if each did it anew.
LIBRARIES = ("transformers.models.llama.modeling_llama", "experiments.finetune", "experiments.passkey", "lm_eval.tasks")


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.rerun")
    parser.add_argument("--scale", default="tiny", help="one that has a suite (default tiny)")
    parser.add_argument("--quick", action="store_true", help="one seed, few samples")
    parser.add_argument("--experiments", nargs="+", metavar="NAME", help="of the evaluations, these alone")
    parser.add_argument("--books", type=Path, metavar="DIR", help="text files to score instead of the registry's books")
    parser.add_argument("--benchmarks", type=Path, metavar="DIR", help="Open LLM's parquet files (default: the hub)")
    parser.add_argument("--corpus", metavar="DIR", help="fine-tune on these texts (default: the scale's)")
    parser.add_argument("--only", choices=("untrained", "trained", "ablations", "temperature"), help="a part of it")
    parser.add_argument("--output", type=cli.directory, metavar="DIR", help="default build/rerun/SCALE, or …-quick")
    parser.add_argument("--results", type=cli.directory, metavar="DIR", help="default OUTPUT/results")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help="default: one a core")
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    arguments = parser.parse_args()
    preset = scales.get(arguments.scale)
    if preset.suite is None:
        raise InputError(f"the scale {arguments.scale!r} has no suite; run its experiments one by one.")
    if arguments.workers < 1:
        raise InputError("give at least one worker.")
    output = arguments.output or records.ROOT / "build" / "rerun" / (arguments.scale + "-quick" * arguments.quick)
    plan = Plan(
        arguments.scale,
        preset,
        output,
        arguments.results or output / "results",
        arguments.quick,
        _text_files(arguments.books),
        arguments.benchmarks,
        arguments.corpus,
        arguments.experiments,
    )
    data, chains = plan.data(), plan.chains(arguments.only)
    timing = [] if arguments.only or arguments.experiments else plan.timing()
    if not chains:
        raise InputError(f"the suite of {arguments.scale!r} has no part {arguments.only!r}; see experiments/scales.py.")
    if arguments.list:
        for command in (command for chain in data + chains + timing for command in chain.commands):
            print(f"python -m {shlex.join(command)}")
        return
    run(data, 1, output / "logs")
    run(chains, arguments.workers, output / "logs")
    run(timing, 1, output / "logs")
    print(f"records in {plan.results}")


def _text_files(folder: Path | None) -> tuple[Path, ...]:
    files = tuple(sorted(folder.glob("*.txt"))) if folder else ()
    if folder and not files:
        raise InputError(f"there is no text file in {folder}; give a directory of .txt files.")
    return files


def run(chains: list[Chain], workers: int, logs: Path) -> None:
    """Run the chains, `workers` at a time, the commands of each one after the other.

    One thread starts and waits: starting a process also asks multiprocessing how its others have ended, and of two
    threads that ask of the same one, the second is told that it failed.

    Raises:
        InputError: a command failed; those under way are stopped.
    """
    logs.mkdir(parents=True, exist_ok=True)
    workers = max(min(workers, len(chains)), 1)
    threads = max((os.cpu_count() or 1) // workers, 1)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    waiting = [(logs / f"{chain.name}.log", chain.commands) for chain in reversed(chains) if chain.commands]
    running = {}
    with tqdm(total=sum(len(chain.commands) for chain in chains), unit="command", smoothing=0) as bar:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    log, commands = waiting.pop()
                    process = context.Process(target=_command, args=(commands[0], log, threads))
                    process.start()
                    running[process.sentinel] = process, log, commands
                for sentinel in connection.wait(list(running)):
                    process, log, (command, *rest) = running.pop(sentinel)
                    process.join()
                    if process.exitcode:
                        *_, last = ["no output", *log.read_text().strip().splitlines()]
                        raise InputError(f"{command[0]} failed ({last.removeprefix('error: ')}); see {log}.")
                    if rest:
                        waiting.append((log, rest))
                    bar.set_postfix_str(log.stem, refresh=False)
                    bar.update()
        finally:
            for process, *_ in running.values():
                process.terminate()
    for chain in chains:
        for record, setting in chain.shared:
            if record.is_file():  # else it was not asked for
                share(record, *setting)


def _command(command: Command, log: Path, threads: int) -> None:
    """What `python -m COMMAND` does, in this process; it ends when the rerun does."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with open(log, "a") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    import torch

    torch.set_num_threads(threads)
    os.environ |= {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    module, *arguments = command
    sys.argv = [module, *arguments]
    os.chdir(records.ROOT)
    cli.run(importlib.import_module(module).main)


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)  # as good as a kill, which every command stands


def share(file: Path, method: str, options: dict) -> Path:
    """Write the record again for a setting that selects the same pairs, and so is the same model."""
    record = json.loads(file.read_text())
    mine = file.stem.removeprefix(records.run_name(record["method"], record["factor"], record["options"]))
    name = records.run_name(method, record["factor"], options) + mine
    same = {"method": method, "options": options, "same_selection_as": file.stem}
    twin = file.with_name(f"{name}.json")
    return records.put(twin, record | same)


if __name__ == "__main__":
    cli.run(main)
