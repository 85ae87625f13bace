"""Measure a model's whole suite with one command.

    python -m experiments.rerun --model tiny              a base model's suite
    python -m experiments.rerun --model tiny --quick      the same with one seed and few samples
    python -m experiments.rerun --model tiny --list       only print the commands, chain by chain
    python -m experiments.rerun --model tiny --chain 7    run one chain, by its number in --list
    python -m experiments.rerun --model PATH_OR_NAME --factor 2    your own model, without training
    timeout 13m python -m experiments.rerun --model smollm2     as much as 13 minutes allow, the
    best first

The suites are in experiments/suites/, that of your own model in own_model.py. Records go to
OUTPUT/results, checkpoints to OUTPUT/checkpoints, and the output of each chain to OUTPUT/logs. If
the command is killed, the same command resumes it and skips what is done. A chain makes one model
and measures it, in a process of its own. On a CPU there is one for each core. On GPUs one chain
runs at a time, on all of them. On a cluster, experiments/suites/slurm.sh runs each chain as a task
of an array. Then tables, figures and pages are rendered beside OUTPUT/results. An experiment that
cannot run on your own model is skipped; the end names it with the reason, and the exit status is 1.
A task or length that does not fit in the model's context is left out and named.
"""

import argparse
import ctypes
import functools
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

import records
from core import files, rope
from core.errors import InputError, NonFiniteError
from experiments import base_models, suites
from experiments.base_models.model import BaseModel
from experiments.kit import command_line, processes, texts
from experiments.kit.command import check_owner
from experiments.kit.command_line import SKIPPED, existing_directory, list_option, option
from experiments.suites.suite import Chain, Suite, chains_of

SKIPPED_COMMAND = f"{SKIPPED}the command "
BENCHMARKS = "open_llm", "longbench_e"  # the folders that --benchmarks may hold
_LINUX = sys.platform == "linux"
_PAUSE = 0.1  # seconds until running chains are looked at again


def main(description: str = __doc__, part: str | None = None) -> None:
    """Measure what the command line asks for.

    Args:
        description: the script's docstring.
        part: the one part of the suite that the script of that name measures; None for all.
    """
    script = f"experiments.{part or 'rerun'}"
    arguments = _parse(description, script)
    suite = _suite(arguments)
    modules = suites.find(suite.states)
    if not modules:
        raise InputError(f"{suite.name!r} has no suite; run its experiments one by one.")
    chains = dict(enumerate(chains_of(modules, suite, part)))
    if arguments.chain is not None:
        if arguments.chain not in chains:
            raise InputError(f"there are {len(chains)} chains; --list numbers them from 0.")
        chains = {arguments.chain: chains[arguments.chain]}
    if arguments.list:
        for number, chain in chains.items():
            print(f"# {number} {chain.name}")
            for command in chain.commands:
                print(f"python -m {shlex.join(command)}")
        return
    if suite.own_checkpoint:
        # imports transformers, which listing does not need
        from experiments.kit.model import resolve

        facts = resolve(suite.own_checkpoint).facts(*suite.model.factors)
        check_owner(suite.results, suite.name)
        records.state_model(suite.results, suite.name, facts)  # refuses another model of that name
    if arguments.chain is not None:
        _measure_one(chains[arguments.chain], suite)
        return
    some_skipped = _measure_all(chains, suite, [script, *sys.argv[1:]])
    # In a folder that was given, which may hold other models, this one alone.
    of_model = ["--model", suite.name] if arguments.results else []
    _render(part, [*of_model, "--results", str(suite.results)])
    if some_skipped:
        print("A command was skipped: above the tables, it is named with its reason.")
        sys.exit(1)


def _measure_all(chains: Mapping[int, Chain], suite: Suite, command: list[str]) -> bool:
    """Measure the chains in processes of their own, and print what was skipped.

    Returns:
        whether a command was skipped.
    """
    import torch

    workers = 1 if torch.cuda.is_available() else _cores()  # chains that run side by side
    logs = suite.output / "logs"
    with files.lock(suite.output):
        print(f"{estimate(chains.values(), suite, workers)}; logs in {logs}", flush=True)
        skipped = run(chains, command, logs, workers)
    for line in dict.fromkeys(skipped):
        print(line)
    measured = (suite.results / suite.name).glob("*/**/*.json")  # model.json lies above them
    if suite.own_checkpoint and not any(measured):
        raise InputError(f"nothing could be measured of {suite.own_checkpoint}; see {logs}.")
    print(f"records in {suite.results}", flush=True)
    return any(line.startswith(SKIPPED_COMMAND) for line in skipped)


def _render(part: str | None, words: list[str]) -> None:
    """Render what was measured: all of it, or of an ablation its two tables.

    Args:
        words: the options that say of what.
    """
    programs = [["tables"], ["figures"], ["report.pages"]]
    if part:
        varied = part.removeprefix("ablation_")
        programs = [["tables", *(f"{varied}_{each}" for each in BENCHMARKS)]]
    for program in programs:
        command = [sys.executable, "-m", *program, *words]
        if status := subprocess.run(command, cwd=records.ROOT).returncode:
            sys.exit(status)


def _measure_one(chain: Chain, suite: Suite) -> None:
    """Measure one chain; exit with status 1 if a command was skipped, which the last lines say.

    The status is 75 (EX_TEMPFAIL) if the checkpoint that it needs is not there yet.
    """
    if chain.needs and not Path(chain.needs).is_dir():
        print(
            f"{chain.name} needs {chain.needs}, which another chain writes; run this one again "
            f"when it is there."
        )
        sys.exit(os.EX_TEMPFAIL)
    with files.lock(suite.output / chain.name):
        skipped = measure(chain, lenient=suite.own_checkpoint is not None)
    if skipped:
        print(*skipped, sep="\n")
        sys.exit(1)


# What is asked for.


def _parse(description: str, script: str) -> argparse.Namespace:
    parser = command_line.parser(description, prog=f"python -m {script}")
    base_models.add_argument(parser)
    list_option(
        parser,
        "--factor",
        command_line.factor,
        "S",
        "scaling factors s for a model of your own (default 2)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one seed and few samples; long steps are left out"
    )
    list_option(parser, "--methods", str, "NAME", "measure only these methods")
    parser.add_argument(
        "--list", action="store_true", help="print the commands, chain by chain, and run nothing"
    )
    option(
        parser,
        "--chain",
        command_line.none_or_more,
        "N",
        "only this chain, by its number in --list, as a task of a cluster runs it",
    )
    _add_data(parser.add_argument_group("data"))
    _add_places(parser.add_argument_group("where and how"))
    return parser.parse_args()


def _add_data(data: argparse._ArgumentGroup) -> None:
    """Add the options that say what is read."""
    option(
        data,
        "--texts",
        texts.source,
        "DIR|KIND:N",
        "score the .txt and .parquet files in DIR, or texts of packages (default: the suite's)",
    )
    texts.add_books_of(data)
    option(
        data,
        "--benchmarks",
        existing_directory,
        "DIR",
        "benchmark files in DIR/open_llm (parquet) and DIR/longbench_e (JSONL), as for those "
        "experiments "
        "(default: the hub's; for a model of your own, these benchmarks are left out)",
    )
    option(
        data,
        "--corpus",
        texts.corpus,
        "DIR",
        "fine-tune on the .txt or .parquet files in DIR (default: the model's data)",
    )


def _add_places(where: argparse._ArgumentGroup) -> None:
    """Add the options that say where results go, and how it is measured."""
    option(
        where,
        "--output",
        command_line.directory,
        "DIR",
        "OUTPUT (default build/rerun/MODEL, for a model of your own build/own; with --quick "
        "…-quick)",
    )
    option(
        where,
        "--results",
        command_line.directory,
        "DIR",
        "where records go (default OUTPUT/results)",
    )
    where.add_argument(
        "--replace",
        action="store_true",
        help="measure all of it again, from the beginning, and replace the records",
    )


def _suite(arguments: argparse.Namespace) -> Suite:
    """The base model, or one's own, with the command line's options; InputError for bad input."""
    name = arguments.model
    own = None
    if model := base_models.MODELS.get(name):
        folder = f"rerun/{name}"
        if arguments.factor:
            raise InputError(
                "a base model's suite decides its factors; give --factor for a model of your own "
                "only."
            )
    else:
        own = str(Path(name).absolute()) if name and Path(name).is_dir() else name
        name, model = _own(own, arguments.factor or [2])
        folder = "own"
    if arguments.quick:
        folder += "-quick"
    output = arguments.output or records.ROOT / "build" / folder
    results = (arguments.results or output / "results").absolute()
    if records.is_sketch(results) != arguments.quick:
        raise InputError(
            f"{results} is no place for this: sketches (--quick), and nothing else, go to a folder "
            "whose parent's name ends in -quick, such as build/mine-quick/results; give another "
            "--results."
        )
    for method in arguments.methods or ():
        rope.get(method)  # refuses a name that is none
    return Suite(
        name,
        model,
        output=output.absolute(),
        results=results,
        quick=arguments.quick,
        own_checkpoint=own,
        given=_given(arguments),
        methods=arguments.methods,
        replace=arguments.replace,
    )


def _given(arguments: argparse.Namespace) -> dict:
    """The user's data: absolute paths, so that commands that are listed can be run anywhere."""
    given = {}
    few = arguments.quick and not arguments.books_of
    if isinstance(arguments.texts, Path):
        found = texts.in_folder(arguments.texts.absolute())
        given["texts"] = found[:1] if few else found
    elif arguments.texts:
        given["texts"] = re.sub(":.*", ":1", arguments.texts) if few else arguments.texts
    if arguments.books_of:
        given["books_of"] = arguments.books_of.absolute()
    if arguments.benchmarks:
        benchmarks = arguments.benchmarks.absolute()
        if not any((benchmarks / folder).is_dir() for folder in BENCHMARKS):
            raise InputError(f"{benchmarks} has no folder {' or '.join(BENCHMARKS)}; add one.")
        given["benchmarks"] = benchmarks
    if arguments.corpus:
        given["corpus"] = arguments.corpus
    return given


def _own(path: str, factors: list[float]) -> tuple[str, BaseModel]:
    """A model of one's own, to be extended by these factors, after the name of its folder of
    records."""
    # imports transformers, which a base model does not need
    from experiments.kit.model import resolve, training_of

    model = resolve(path)
    if training_of(model):
        raise InputError(
            f"{path} was fine-tuned for a longer context already; evaluate it as it is, for "
            f"example with "
            f"`python -m experiments.perplexity --model {shlex.quote(path)}`."
        )
    for factor in factors:
        rope.scale(model.geometry, rope.ORIGINAL, factor)  # refuses a factor that extends nothing
    return model.folder, model.settings(*factors)


# How long it takes.


def estimate(chains: Collection[Chain], suite: Suite, workers: int) -> str:
    """How many chains there are; and how long those took that have committed records of the suite's
    sizes. For a new method it is YaRN's, and under --quick an upper limit."""
    workers = min(workers, len(chains))
    said = f"{len(chains)} chains, {workers} at a time" if len(chains) > 1 else "1 chain"
    took = [seconds for chain in chains if (seconds := _seconds(chain, suite)) is not None]
    if not took:
        return f"{said}; no record says how long they take"
    hours = sum(took) / workers / 3600
    said += f"; {len(took)} of them took {hours:.1f} h for the committed records"
    if suite.new:
        said += f", {rope.BASELINE}'s where a method has none"
    return f"{said}; a sketch takes a part of that" if suite.quick else said


def _seconds(chain: Chain, suite: Suite) -> float | None:
    """How long a chain took for the committed records of the suite's sizes; None if one is
    missing, or the model is one's own."""
    if suite.own_checkpoint:
        return None
    known = chain.name
    for method, _ in suite.new:
        known = known.replace(f"{method}_", f"{rope.BASELINE}_", 1)
    seconds = 0.0
    for module, *_ in chain.commands:
        experiment = module.rpartition(".")[2]
        asked = suites.defaults(suite.states, suite.model, experiment, suite.model.factors[0])
        asked = json.loads(json.dumps(asked, default=str))  # as a record states them
        for file in records.folder(records.RESULTS, suite.name, experiment).glob(f"{known}*.json"):
            record = records.read(file)
            run = record["run"]
            as_asked = all(run.get(option, value) == value for option, value in asked.items())
            # what is measured states the fine-tune as its training, a fine-tune by its file's name
            stated = records.run_of(run) if "method" in run else None
            if as_asked and known in (stated, file.stem):
                seconds += record["environment"]["seconds"]
                break
        else:
            return None
    return seconds


# How chains run: side by side on a CPU; on GPUs one after the other, each command on all of them. A
# chain is a process, which imports the libraries once: the same command line again, with --chain
# and its number. So it is as a task of a cluster, too.


def run(chains: Mapping[int, Chain], command: Sequence[str], logs: Path, workers: int) -> list[str]:
    """Run chains, each as `python -m COMMAND --chain NUMBER`, which calls :func:`measure`; then,
    one by one, those that need the checkpoint of another.

    Those that an earlier call ended are looked at last. So calls that are stopped again and again
    get on with the rest.

    Args:
        chains: by number.
        command: a module and its arguments.
        logs: the folder for a log of each chain.
        workers: how many run at a time.

    Returns:
        what was skipped, a sentence each.

    Raises:
        InputError: a chain failed; the running ones are stopped.
    """
    logs.mkdir(parents=True, exist_ok=True)
    log_of = {number: logs / f"{chain.name}.log" for number, chain in chains.items()}
    ended = {number for number in chains if log_of[number].with_suffix(".ended").exists()}
    workers = min(workers, sum(not chain.needs for chain in chains.values()))
    order = sorted(chains, key=lambda number: (bool(chains[number].needs), number in ended))
    running: dict[subprocess.Popen, tuple[Path, int]] = {}
    skipped: list[str] = []

    def wait() -> None:
        time.sleep(_PAUSE)
        for process in list(running):
            if process.poll() is not None:
                skipped.extend(_skipped(*running.pop(process), process.returncode))
                bar.update()

    try:
        with tqdm(total=len(chains), unit="chain", smoothing=0) as bar:
            for number in order:
                side_by_side = 1 if chains[number].needs else workers
                while len(running) >= side_by_side:
                    wait()
                log = log_of[number]
                begin = log.stat().st_size if log.exists() else 0
                process = _started([*command, "--chain", str(number)], log, side_by_side)
                running[process] = log, begin
            while running:
                wait()
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return skipped


def _started(command: Sequence[str], log: Path, side_by_side: int) -> subprocess.Popen:
    """`python -m COMMAND` with its share of the cores; on Linux it ends with this process."""
    threads = max(_cores() // side_by_side // processes.expected(), 1)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    if side_by_side > 1:
        environment["TOKENIZERS_PARALLELISM"] = "false"
    # 1 is PR_SET_PDEATHSIG
    with_this = functools.partial(ctypes.CDLL(None).prctl, 1, signal.SIGTERM) if _LINUX else None
    with open(log, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            preexec_fn=with_this,
        )


def _cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if _LINUX else os.cpu_count() or 1


def _skipped(log: Path, begin: int, status: int) -> list[str]:
    """What a chain that ended has skipped, by what it wrote to its log; InputError if it failed."""
    lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()
    said = ["no output", *filter(str.strip, lines)]
    some_skipped = status == 1 and said[-1].startswith(SKIPPED_COMMAND)
    if status and not some_skipped:
        raise InputError(f"{log.stem} failed ({said[-1].removeprefix('error: ')}); see {log}.")
    log.with_suffix(".ended").touch()
    return [line for line in said if line.startswith(SKIPPED)]


def measure(chain: Chain, lenient: bool = False) -> list[str]:
    """Run the commands of a chain in this process; where there are several GPUs, in one process on
    each.

    Args:
        lenient: skip a command that refuses its input.

    Returns:
        what was skipped, a sentence each.
    """
    import torch

    skipped = []
    for module, *arguments in chain.commands:
        try:
            main = importlib.import_module(module).main
            divides = getattr(getattr(main, "__self__", None), "divides", False)
            if divides and torch.cuda.device_count() > 1:
                main.__self__.parser().parse_args(arguments)  # refused before any work
                status = processes.on_all_gpus(module, arguments)
                if status == 2 and lenient:
                    raise InputError("its log says why")
                if status:
                    sys.exit(status)
                continue
            sys.argv = [module, *arguments]
            main()
        except SystemExit as end:
            if end.code:
                raise
        except (InputError, NonFiniteError) as error:
            if not lenient or isinstance(error, command_line.UsageError):
                raise
            skipped.append(f"{SKIPPED_COMMAND}{module.removeprefix('experiments.')}: {error}")
    return skipped


if __name__ == "__main__":
    command_line.run(main)
