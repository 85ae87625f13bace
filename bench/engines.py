"""Run the same benchmarks on transformers and on vLLM: how many answers are equal, the scores, the ratio of speeds.

    python -m bench.engines [--scale tiny] [--longbench DIR] [--open-llm DIR]

Each benchmark runs on transformers and then on vLLM, through its own command, on one extension of the scale's model.
The seconds do not include loading the model and ending the engine, which have a row of their own. The rows are printed
and added to bench/results/engines.csv.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from bench import rows
from core import rope
from eval.engines.worker import Worker
from experiments.lab import cli, engines, models, scales

FILE = rows.RESULTS / "engines.csv"
RETRIEVAL = ("niah_single_1", "niah_multikey_2", "vt")


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m bench.engines")
    parser.add_argument(
        "--scale", default="tiny", help=f"use the model of this scale: {', '.join(scales.SCALES)} (default tiny)"
    )
    parser.add_argument("--method", default=rope.OURS, help=f"one of {', '.join(rope.METHODS)} (default {rope.OURS})")
    parser.add_argument("--dtype", default="float32", help="dtype of the model (default float32)")
    parser.add_argument("--factor", type=cli.factor, default=2, metavar="S", help="scaling factor s = L'/L (default 2)")
    parser.add_argument(
        "--samples", type=cli.count, default=2, metavar="N", help="samples per task and length (default 2)"
    )
    parser.add_argument(
        "--benchmarks",
        nargs="+",
        default=list(BENCHMARKS),
        choices=BENCHMARKS,
        metavar="NAME",
        help=f"among {', '.join(BENCHMARKS)} (default: all)",
    )
    parser.add_argument(
        "--longbench", type=cli.existing_directory, metavar="DIR", help="LongBench-E's JSONL files; else it is left out"
    )
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="tasks of LongBench-E (default: all in DIR)")
    parser.add_argument(
        "--open-llm", type=cli.existing_directory, metavar="DIR", help="Open LLM's parquet files; else it is left out"
    )
    parser.add_argument(
        "--tensor-parallel", type=cli.count, default=1, metavar="N", help="GPUs that vLLM divides the model among"
    )
    parser.add_argument(
        "--output", type=Path, default=FILE, metavar="CSV", help="add rows here (default bench/results/engines.csv)"
    )
    arguments = parser.parse_args()

    n_hat = scales.get(arguments.scale).n_hat.get(arguments.factor)
    takes_it = n_hat and "n_hat" in rope.method_options(arguments.method)
    method = ["--method", arguments.method, *(["--n-hat", str(n_hat)] if takes_it else [])]
    model = ["--scale", arguments.scale, "--factor", str(arguments.factor), "--dtype", arguments.dtype, *method]
    for name in arguments.benchmarks:
        chosen = BENCHMARKS[name](arguments)
        if chosen is None:
            print(f"note: {name} is left out, because no directory of its samples was given", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [name, *model, *chosen, "--results", f"{folder}/results"]
            found = {engine: measured(command, engine, Path(folder), arguments) for engine in engines.NAMES}
        rows.append(arguments.output, compared(name, arguments, found))


def ruler(arguments: argparse.Namespace) -> list[str]:
    """Retrieval and tracing at L, or at 4,096 tokens if L is longer."""
    length = models.geometry(arguments.scale).context_length
    return ["--lengths", str(min(length, 4096)), "--tasks", *RETRIEVAL, "--samples", str(arguments.samples)]


def passkey(arguments: argparse.Namespace) -> list[str]:
    """Passkeys at half of L and at 9/8 L."""
    length = models.geometry(arguments.scale).context_length
    lengths = (length // 2, length * 9 // 8)
    return ["--lengths", *map(str, lengths), "--depths", str(arguments.samples), "--keys", "1"]


def longbench_e(arguments: argparse.Namespace) -> list[str] | None:
    """The first samples of each task."""
    if arguments.longbench is None:
        return None
    present = [file.stem.removesuffix("_e") for file in sorted(arguments.longbench.glob("*.jsonl"))]
    tasks = arguments.tasks or list(dict.fromkeys(present))
    return ["--data", str(arguments.longbench), "--tasks", *tasks, "--limit", str(arguments.samples)]


def open_llm(arguments: argparse.Namespace) -> list[str] | None:
    """Some documents of each benchmark."""
    if arguments.open_llm is None:
        return None
    return ["--data", str(arguments.open_llm), "--limit", str(4 * arguments.samples)]


BENCHMARKS = {"ruler": ruler, "passkey": passkey, "longbench_e": longbench_e, "open_llm": open_llm}


def measured(command: list[str], engine: str, folder: Path, arguments: argparse.Namespace) -> dict:
    """The answers by key, the seconds to load the model and to end the engine, and the remaining seconds."""
    given = [] if engine == engines.DEFAULT else ["--tensor-parallel", str(arguments.tensor_parallel)]
    before, started = set(folder.rglob("*.jsonl")), time.perf_counter()
    line = [command[0], *command[1:], "--engine", engine, *given]
    with (
        mock.patch.object(sys, "argv", line),
        timed(models, "load") as loading,
        timed(Worker, "__init__") as starting,
        timed(Worker, "close") as ending,
    ):
        importlib.import_module(f"experiments.{command[0]}").main()
    whole, around = time.perf_counter() - started, sum(loading + starting + ending)
    (journal,) = set(folder.rglob("*.jsonl")) - before
    parts = dict(json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines())
    answers = {key: part["value"] for key, part in parts.items()}
    return {"answers": answers, "around": around, "seconds": whole - around}


@contextlib.contextmanager
def timed(owner: object, name: str) -> Iterator[list[float]]:
    """Inside the context, a list collects the seconds of each call of `owner.name`."""
    plain, seconds = getattr(owner, name), []

    def call(*arguments, **options):
        started = time.perf_counter()
        try:
            return plain(*arguments, **options)
        finally:
            seconds.append(time.perf_counter() - started)

    with mock.patch.object(owner, name, call):
        yield seconds


def compared(name: str, arguments: argparse.Namespace, found: dict[str, dict]) -> list[dict[str, str]]:
    """The rows of one benchmark."""
    made, model = [], f"{arguments.scale} {arguments.method} {arguments.dtype}"

    def add(what: str, engine: str, value: float | int | str, unit: str) -> None:
        made.append(rows.row(f"{name}, {what}", model, engine, value, unit, vllm=engines.version()))

    ours, theirs = (found[engine]["answers"] for engine in engines.NAMES)
    both = " and ".join(engines.NAMES)
    add("samples", both, len(ours), "samples")
    if all("prediction" in answer for answer in ours.values()):
        equal = sum(ours[key]["prediction"] == theirs[key]["prediction"] for key in ours)
        add("equal predictions", both, equal, "samples")
    add("equal scores", both, sum(abs(ours[key]["score"] - theirs[key]["score"]) < 1e-4 for key in ours), "samples")
    for engine in engines.NAMES:
        answers = found[engine]["answers"].values()
        add("mean score", engine, sum(answer["score"] for answer in answers) / len(ours), "of 1")
        add("seconds", engine, found[engine]["seconds"], "s")
        add("seconds to start and end", engine, found[engine]["around"], "s")
    speed = [found[engine]["seconds"] for engine in engines.NAMES]
    add("speed of vllm over transformers", both, speed[0] / speed[1], "ratio")
    return made


if __name__ == "__main__":
    cli.run(main)
