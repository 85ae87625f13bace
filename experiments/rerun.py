"""Measure a model's whole suite with one command.

    python -m experiments.rerun --model tiny                    a scale's suite: fine-tunes, evaluations, ablations
    python -m experiments.rerun --model tiny --quick            the same with one seed and few samples
    python -m experiments.rerun --model tiny --list             print the commands and run nothing
    python -m experiments.rerun --model llama2-7b --plan        print what it takes: GPU-hours, memory, disk
    python -m experiments.rerun --model PATH_OR_NAME --factor 2   your own model under every method, without training

A scale's suite is defined in experiments/lab/scales/, and that of your own model in experiments/kit/own.py. Records go
to OUTPUT/results, checkpoints to OUTPUT/checkpoints, and the output of each command to OUTPUT/logs. If the command is
killed, the same command resumes it and skips what is done. On several GPUs, training takes all of them and each
evaluation takes one. If an experiment cannot run on your own model, for example because a task does not fit in its
context, it is skipped and named at the end with the reason.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from core import files, rope
from core.errors import InputError
from experiments import base_models
from experiments.kit import command_line, given_model, own, pool, records
from experiments.kit.plan import Plan


def main() -> None:
    arguments = _parse()
    model = _local(arguments.model) if arguments.model is not None else None
    name = given_model.own_name(model) if model is not None else arguments.scale
    preset = _of_model(name, model, arguments.factor) if model is not None else _of_scale(name, arguments.factor)
    output = arguments.output or records.ROOT / "build" / "rerun" / (name + "-quick" * arguments.quick)
    results = (arguments.results or output / "results").absolute()
    plan = Plan(
        name,
        preset,
        output.absolute(),
        results,
        arguments.quick,
        model,
        _text_files(arguments.books),
        _benchmarks(arguments.benchmarks, preset),
        _corpus(arguments.corpus),
        _experiments(arguments.experiments, name, preset),
        arguments.methods and [rope.get(method).name for method in arguments.methods],
        arguments.replace,
    )
    miniature, chains = plan.miniature(), plan.chains(arguments.only)
    timing = [] if arguments.only or arguments.experiments or arguments.methods else plan.timing()
    if not chains:
        part = f"no part {arguments.only!r}" if arguments.only else "nothing that matches these options"
        raise InputError(f"the suite of {name!r} has {part}; see all of it with --list alone.")
    if arguments.plan:
        from experiments.kit import cost

        print(cost.report(plan, [*chains, *timing], arguments.gpus, arguments.memory))
        return
    if arguments.list:
        for command in (command for chain in miniature + chains + timing for command in chain.commands):
            print(f"python -m {shlex.join(command)}")
        return
    files.check_writable(plan.output)
    files.check_writable(results)
    if model is not None:
        _state(plan)
    logs, here = plan.output / "logs", pool.Machine.found(arguments.workers)
    with files.lock(plan.output):
        pool.run(miniature, here.single, logs)
        skipped = pool.run(chains, here, logs, lenient=model is not None)
        for chain in chains:
            pool.share(chain, results / name)
        pool.run(timing, here.single, logs)
    for experiment, reason in dict.fromkeys(skipped):
        print(f"skipped {experiment}: {reason}")
    if len(skipped) == sum(len(chain.commands) for chain in chains):
        raise InputError(f"nothing could be measured of {model}; see {logs}.")
    print(f"records in {results}; render them with")
    print(f"make tables figures pages MODEL={shlex.quote(name)} RESULTS={shlex.quote(str(results))}")


def _parse() -> argparse.Namespace:
    parser = command_line.parser(__doc__, prog="python -m experiments.rerun")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--model", default="tiny", help=f"measure this scale: one of {', '.join(base_models.MODELS)} (default tiny)"
    )
    what.add_argument(
        "--model", metavar="PATH_OR_NAME", help="measure your own checkpoint: a directory or a name on the hub"
    )
    parser.add_argument(
        "--factor", type=command_line.factor, nargs="+", metavar="S", help="scaling factors s for --model (default 2)"
    )
    parser.add_argument("--quick", action="store_true", help="one seed and few samples; long steps are left out")
    parser.add_argument(
        "--only",
        choices=("untrained", "trained", "ablations", "temperature", "learned"),
        help="measure only this part of the suite",
    )
    parser.add_argument("--experiments", nargs="+", metavar="NAME", help="run only these experiments of the suite")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="measure only these methods")
    parser.add_argument("--list", action="store_true", help="print the commands and run nothing")
    plan = parser.add_argument_group("planning")
    plan.add_argument(
        "--plan", action="store_true", help="estimate GPU-hours on A100s, memory and disk, and run nothing"
    )
    plan.add_argument("--gpus", type=command_line.count, default=8, metavar="N", help="GPUs to plan for (default 8)")
    plan.add_argument(
        "--memory", type=command_line.number, default=80, metavar="GB", help="memory of each GPU (default 80)"
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--books", type=Path, metavar="DIR", help="score the .txt files in DIR (default: the packaged books)"
    )
    data.add_argument(
        "--benchmarks",
        type=Path,
        metavar="DIR",
        help="benchmark files in DIR/open_llm (parquet) and DIR/longbench_e (JSONL), as for --data of those "
        "experiments (default: the hub's; with --model, these benchmarks are left out)",
    )
    data.add_argument(
        "--corpus", metavar="DIR", help="fine-tune on the .txt or .parquet files in DIR (default: the scale's data)"
    )
    where = parser.add_argument_group("where and how")
    where.add_argument(
        "--output",
        type=command_line.directory,
        metavar="DIR",
        help="OUTPUT (default build/rerun/MODEL; with --quick …-quick)",
    )
    where.add_argument(
        "--results", type=command_line.directory, metavar="DIR", help="where records go (default OUTPUT/results)"
    )
    where.add_argument(
        "--replace", action="store_true", help="replace records of the same name that have other settings"
    )
    where.add_argument(
        "--workers",
        type=command_line.count,
        metavar="N",
        help="commands to run at a time (default: one per core; with GPUs, one per GPU)",
    )
    return parser.parse_args()


def _of_scale(name: str, factors: list[float] | None) -> Scale:
    preset = base_models.get(name)
    if preset.suite is None:
        raise InputError(f"the scale {name!r} has no suite; run its experiments one by one.")
    if factors:
        raise InputError("a scale's suite decides its factors; give --factor with --model only.")
    return preset


def _of_model(name: str, model: str, factors: list[float] | None) -> Scale:
    if (Path(model) / "training.json").is_file():
        raise InputError(
            f"{model} was fine-tuned for a longer context already; evaluate it as it is, for example with "
            f"`python -m experiments.perplexity --model {model}`."
        )
    geometry, chosen = given_model.Source(name, model).geometry, tuple(dict.fromkeys(factors or [2]))
    for factor in chosen:
        rope.scale(geometry, rope.ORIGINAL, factor)  # refuses a factor that extends nothing
    return own.scale(name, model, geometry, chosen)


def _state(plan: Plan) -> None:
    """Write the facts of the model beside its records; refuse, before any work, if they belong to another model."""
    from experiments.kit import load_model

    sha256 = load_model.provenance(plan.model)["sha256"]
    for factor in plan.factors:
        facts = load_model.facts(plan.model, plan.scale, factor)
        records.state_model(plan.results, plan.scale, facts | {"sha256": sha256})


def _local(model: str) -> str:
    """A directory's absolute path, because the commands run in another directory; a name on the hub as it is."""
    return str(Path(model).absolute()) if model.strip() and Path(model).is_dir() else model


def _existing(folder: Path, option: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"{option} {folder} is no directory; give one that exists.")
    return folder.absolute()


def _text_files(folder: Path | None) -> tuple[Path, ...]:
    files = tuple(sorted(_existing(folder, "--books").glob("*.txt"))) if folder else ()
    if folder and not files:
        raise InputError(f"there is no text file in {folder}; give a directory of .txt files.")
    return files


def _benchmarks(folder: Path | None, preset: Scale) -> Path | None:
    if folder and not any((_existing(folder, "--benchmarks") / name).is_dir() for name in preset.suite.names):
        raise InputError(f"{folder} has no folder by the name of a benchmark, such as open_llm; add one.")
    return folder and folder.absolute()


def _corpus(name: str | None) -> str | None:
    return name if name in (None, "hub", "books") else str(_existing(Path(name), "--corpus"))


def _experiments(names: list[str] | None, scale: str, preset: Scale) -> list[str] | None:
    for name in names or ():
        if name not in preset.suite.names:
            known = ", ".join(preset.suite.names)
            raise InputError(f"the suite of {scale!r} has no experiment {name!r}; choose among {known}.")
    return names


if __name__ == "__main__":
    command_line.run(main)
