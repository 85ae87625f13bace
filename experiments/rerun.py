"""Measure everything of a scale anew: the fine-tunes of every method, all evaluations of all models, both ablations.

    python -m experiments.rerun --scale tiny            everything; the scale's suite in experiments/scales.py says what
    python -m experiments.rerun --scale tiny --quick    one seed and few samples of everything
    python -m experiments.rerun --scale tiny --list     what it would run

Records go to OUTPUT/results, checkpoints to OUTPUT/checkpoints, what each command prints to OUTPUT/logs. The commands
are those of the README, one process each (forked from one that has the libraries loaded already), as many at a time as
--workers; given again after a kill, each goes on where it was, and what is done is skipped.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from core.errors import InputError
from core.rope import scale as rope_scale
from experiments import cli, records, scales
from experiments.scales import Scale, Suite

Command = list[str]
# What the commands import, seven seconds a process if each did it anew.
LIBRARIES = ("transformers.models.llama.modeling_llama", "experiments.finetune", "experiments.passkey", "lm_eval.tasks")
Setting = tuple[str, dict]  # a method and its options


@dataclass
class Chain:
    """Commands that follow each other: a model, and all that is measured of it.

    Attributes:
        name: of the log.
        commands: module and arguments of each.
        shared: records that also hold for another setting, as (record, the setting's options).
    """

    name: str
    commands: list[Command]
    shared: list[tuple[Path, dict]] = field(default_factory=list)


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.rerun")
    parser.add_argument("--scale", default="tiny", help="one that has a suite (default tiny)")
    parser.add_argument("--quick", action="store_true", help="one seed, few samples")
    parser.add_argument("--only", choices=("untrained", "trained", "ablations", "temperature"), help="a part of it")
    parser.add_argument("--output", type=Path, metavar="DIR", help="default build/rerun/SCALE, or …-quick")
    parser.add_argument("--results", type=Path, metavar="DIR", help="default OUTPUT/results")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help="default: one a core")
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    arguments = parser.parse_args()
    preset = scales.get(arguments.scale)
    if preset.suite is None:
        raise InputError(f"the scale {arguments.scale!r} has no suite; run its experiments one by one.")
    if arguments.workers < 1:
        raise InputError("give at least one worker.")
    output = arguments.output or records.ROOT / "build" / "rerun" / (arguments.scale + "-quick" * arguments.quick)
    plan = Plan(arguments.scale, preset, output, arguments.results or output / "results", arguments.quick)
    data, chains = plan.data(), plan.chains(arguments.only)
    timing = [] if arguments.only else plan.timing()
    if not chains:
        raise InputError(f"the suite of {arguments.scale!r} has no part {arguments.only!r}; see experiments/scales.py.")
    if arguments.list:
        for command in (command for chain in data + chains + timing for command in chain.commands):
            print(f"python -m {' '.join(command)}")
        return
    run(data, 1, output / "logs")
    run(chains, arguments.workers, output / "logs")
    run(timing, 1, output / "logs")
    print(f"records in {plan.results}")


@dataclass(frozen=True)
class Plan:
    """What there is to do for a scale."""

    scale: str
    preset: Scale
    output: Path
    results: Path
    quick: bool

    @property
    def suite(self) -> Suite:
        return self.preset.suite

    def data(self) -> list[Chain]:
        """The miniature benchmarks, where the suite has any."""
        if not self.suite.miniature:
            return []
        arguments = self.suite.miniature[self.quick].split()
        made = ["experiments.miniature", "--scale", self.scale, "--output", str(self.output / "miniature"), *arguments]
        return [Chain("miniature", [made])]

    def timing(self) -> list[Chain]:
        """What each method costs, measured with nothing beside it; CLEX with the weights that were trained before."""
        if not self.suite.seeds:
            return []
        factor = self.preset.factors[0]
        methods = dict.fromkeys(method for method, _ in self.preset.trained(factor))
        weights = self.output / "checkpoints" / f"{records.run_name('clex', factor, {})}_seed=0"
        command = ["experiments.time_cost", "--scale", self.scale, "--factor", str(factor), "--method", *methods]
        command += ["--weights", str(weights), *self._to()]
        # Short sequences, many rounds: what is timed side by side meets the same machine.
        size = ["--length", "512", *(["--repeats", "1"] if self.quick else [])]
        return [Chain("time_cost", [command + size])]

    def chains(self, only: str | None = None) -> list[Chain]:
        """The longest first, so that the workers end together."""
        parts = {
            "trained": self._trained,
            "ablations": self._ablations,
            "temperature": self._temperature,
            "untrained": self._untrained,
        }
        chains: dict[str, Chain] = {}
        for name, part in parts.items():
            for chain in part() if only in (None, name) else ():
                chains.setdefault(chain.name, chain).shared.extend(chain.shared)
        return list(chains.values())

    def _seeds(self) -> range:
        return range(min(self.suite.seeds, 1) if self.quick else self.suite.seeds)

    def _trained(self) -> Iterator[Chain]:
        for seed in self._seeds():
            for factor in self.preset.factors:
                for setting in self.preset.trained(factor):
                    yield self._fine_tune(setting, factor, seed)

    def _ablations(self) -> Iterator[Chain]:
        """One chain for each selection of pairs, however many settings lead to it."""
        factor = self.preset.factors[0]
        settings: list[Setting] = [("dprope", {"n_hat": value}) for value in self.suite.n_hat]
        settings += [("dprope", {"intervals": value}) for value in self.suite.intervals]
        groups: dict[bytes, list[Setting]] = {}
        for method, options in [*self.preset.trained(factor), *settings]:
            if method == "dprope":
                chosen = rope_scale(self.preset.geometry, method, factor, **options).interpolated
                groups.setdefault(chosen.tobytes(), []).append((method, options))
        for first, *others in groups.values():
            chain = self._fine_tune(first, factor, 0, self.suite.ablated)
            for _, options in others:
                for experiment in self.suite.ablated:
                    chain.shared.append((records.path(self.results, self.scale, experiment, chain.name), options))
            if chain.shared or first not in self.preset.trained(factor):
                yield chain

    def _temperature(self) -> Iterator[Chain]:
        """The comparison's YaRN without its temperature and DPRoPE with it, as they are and fine-tuned."""
        for factor in self.preset.factors if self.suite.sharpened else ():
            for setting in self.preset.sharpened(factor):
                for seed in self._seeds():
                    yield self._fine_tune(setting, factor, seed, self.suite.sharpened)
                name = records.run_name(setting[0], factor, setting[1])
                yield Chain(name, self._evaluate(self._method(setting, factor), self.suite.sharpened))

    def _untrained(self) -> Iterator[Chain]:
        for factor in self.preset.factors:
            for setting in self.preset.comparison(factor) if self.suite.evaluations else ():
                name = records.run_name(setting[0], factor, setting[1])
                yield Chain(name, self._evaluate(self._method(setting, factor)))
        scale = ["--scale", self.scale, *self._to()]
        curves = [*scale, "--factor", str(self.preset.factors[0])]
        yield Chain("extension", [["experiments.disturbance", *scale], ["experiments.extension", *curves]])

    def _fine_tune(self, setting: Setting, factor: int, seed: int, only: Collection[str] | None = None) -> Chain:
        name = records.run_name(setting[0], factor, setting[1]) + f"_seed={seed}"
        checkpoint = self.output / "checkpoints" / name
        train = ["experiments.finetune", *self._method(setting, factor), "--seed", str(seed)]
        train += ["--output", str(checkpoint), *self._to()]
        if self.quick:
            train += ["--steps", "2"]
        return Chain(name, [train, *self._evaluate(["--model", str(checkpoint)], only)])

    def _method(self, setting: Setting, factor: int) -> Command:
        options = [part for key, value in setting[1].items() for part in (f"--{key.replace('_', '-')}", str(value))]
        return ["--scale", self.scale, "--method", setting[0], "--factor", str(factor), *options]

    def _evaluate(self, model: Command, only: Collection[str] | None = None) -> list[Command]:
        miniature = self.output / "miniature"
        commands = []
        for experiment, line in (self.suite.quick if self.quick else self.suite.evaluations).items():
            if only is not None and experiment not in only:
                continue
            given = [
                part.format(longbench_e=miniature / "longbench_e", open_llm=miniature / "open_llm")
                for part in line.split()
            ]
            commands.append([f"experiments.{experiment}", *model, *given, *self._to()])
        return commands

    def _to(self) -> Command:
        return ["--results", str(self.results)]


def run(chains: list[Chain], workers: int, logs: Path) -> None:
    """Run the chains, `workers` at a time.

    Raises:
        InputError: a command failed; those under way are stopped.
    """
    logs.mkdir(parents=True, exist_ok=True)
    workers = max(min(workers, len(chains)), 1)
    stop, running = threading.Event(), set()
    with (
        tqdm(total=sum(len(chain.commands) for chain in chains), unit="command", smoothing=0) as bar,
        concurrent.futures.ThreadPoolExecutor(workers) as pool,
    ):
        futures = [pool.submit(_follow, chain, logs, workers, stop, running, bar) for chain in chains]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            stop.set()
            for process in list(running):
                process.terminate()
            raise
    for chain in chains:
        for record, options in chain.shared:
            share(record, options)


def _follow(chain: Chain, logs: Path, workers: int, stop: threading.Event, running: set, bar: tqdm) -> None:
    threads = max((os.cpu_count() or 1) // workers, 1)
    log = logs / f"{chain.name}.log"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    for command in chain.commands:
        if stop.is_set():
            return
        process = context.Process(target=_command, args=(command, log, threads))
        process.start()
        running.add(process)
        process.join()
        running.discard(process)
        if process.exitcode and not stop.is_set():
            last = log.read_text().strip().splitlines()[-1]
            raise InputError(f"{command[0]} failed ({last.removeprefix('error: ')}); see {log}.")
        bar.set_postfix_str(chain.name, refresh=False)
        bar.update()


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


def share(file: Path, options: dict) -> Path:
    """Write the record again for a setting that selects the same pairs, and so is the same model."""
    record = json.loads(file.read_text())
    mine = file.stem.removeprefix(records.run_name(record["method"], record["factor"], record["options"]))
    name = records.run_name(record["method"], record["factor"], options) + mine
    same = {"options": options, "same_selection_as": file.stem}
    twin = file.with_name(f"{name}.json")
    return records.put(twin, record | same)


if __name__ == "__main__":
    cli.run(main)
