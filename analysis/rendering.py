"""The command line that renders tables and figures from records, for chosen artifacts and models."""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from analysis import results
from analysis.results import NotMeasured, Results, root
from core import files
from core.errors import InputError
from experiments.kit import command_line

Make = Callable[[str, Results, Path], list[Path]]


INPUTS = "inputs.sha256"  # beside a model's artifacts: the hash of what they were rendered from


def run(doc: str, kind: str, known: list[str], make: Make, sources: list[Path] | None = None) -> None:
    """Render artifacts of a kind into KIND/<model>/ beside the records.

    Artifacts without records are skipped. It is an error if nothing at all can be rendered.

    Args:
        kind: "tables" or "figures".
        known: the names of all artifacts.
        make: renders one artifact of a model into a folder and returns the files that it wrote.
        sources: for slow artifacts, the files of code that draw them. If a model's records and this code did not change
            since the last run, the model is skipped, unless artifacts are asked for by name.
    """
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"what to render, among {', '.join(known)} (default: all)"
    )
    parser.add_argument("--model", help="the model to render (default: every model that has records)")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    folder = results.place(arguments.model, arguments.results)
    wanted = [arguments.model] if arguments.model else results.models(folder)
    if not wanted:
        raise InputError(f"there are no records under {folder}; measure something, or give --results.")
    beside = root(folder) / kind
    now = {model: _inputs(folder / model, sources) for model in wanted if sources and not arguments.names}
    same = [model for model in wanted if model in now and _last(beside / model) == now[model]]
    for model in same:
        print(f"unchanged: {os.path.relpath(beside / model)}")
    jobs = [
        (make, name, model, folder, beside / model)
        for model in wanted
        if model not in same
        for name in arguments.names or known
    ]
    rendered, missing = [], []
    for outcome in _each(jobs):
        (missing if isinstance(outcome, NotMeasured) else rendered).append(outcome)
    if not (rendered or same) and missing:
        raise missing[0]
    for file in itertools.chain.from_iterable(rendered):
        print(os.path.relpath(file))
    for model in now.keys() - set(same):
        if (beside / model).is_dir():
            files.write(beside / model / INPUTS, now[model] + "\n")


def _inputs(records: Path, sources: list[Path]) -> str:
    """A hash of a model's records and of the code that draws them."""
    digest = hashlib.sha256(f"{version('matplotlib')} {version('numpy')}".encode())
    for file in [*sorted(records.rglob("*.json")), *sources]:
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _last(folder: Path) -> str | None:
    file = folder / INPUTS
    return file.read_bytes().decode(errors="replace").strip() if file.is_file() else None


def _each(jobs: list[tuple]) -> list[list[Path] | NotMeasured]:
    """Do the jobs in this process, or if there are many, in several processes."""
    workers = min(os.cpu_count() or 1, len(jobs) // 4)
    if workers < 2:
        return [_one(*job) for job in jobs]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), command_line.end_with_parent) as pool:
        return list(pool.map(_one, *zip(*jobs)))


def _one(make: Make, name: str, model: str, records: Path, folder: Path) -> list[Path] | NotMeasured:
    try:
        return make(name, Results.of(model, records), folder)
    except NotMeasured as error:
        return error
