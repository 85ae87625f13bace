"""The command line that renders tables and figures from records, for chosen artifacts and scales."""

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
from experiments.kit.records import RESULTS

Make = Callable[[str, Results, Path], list[Path]]


INPUTS = "inputs.sha256"  # beside a scale's artifacts: the hash of what they were rendered from


def run(doc: str, kind: str, known: list[str], make: Make, sources: list[Path] | None = None) -> None:
    """Render artifacts of a kind into KIND/<scale>/ beside the records.

    Artifacts without records are skipped. It is an error if nothing at all can be rendered.

    Args:
        kind: "tables" or "figures".
        known: the names of all artifacts.
        make: renders one artifact of a scale into a folder and returns the files that it wrote.
        sources: for slow artifacts, the files of code that draw them. If a scale's records and this code did not change
            since the last run, the scale is skipped, unless artifacts are asked for by name.
    """
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"what to render, among {', '.join(known)} (default: all)"
    )
    parser.add_argument("--scale", help="the scale to render (default: every scale that has records)")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="read records from DIR (default results/)"
    )
    arguments = parser.parse_args()

    wanted = [arguments.scale] if arguments.scale else results.scales(arguments.results)
    if not wanted:
        raise InputError(f"there are no records under {arguments.results}; measure something, or give --results.")
    beside = root(arguments.results) / kind
    now = {scale: _inputs(arguments.results / scale, sources) for scale in wanted if sources and not arguments.names}
    same = [scale for scale in wanted if scale in now and _last(beside / scale) == now[scale]]
    for scale in same:
        print(f"unchanged: {os.path.relpath(beside / scale)}")
    jobs = [
        (make, name, scale, arguments.results, beside / scale)
        for scale in wanted
        if scale not in same
        for name in arguments.names or known
    ]
    made, missing = [], []
    for found in _each(jobs):
        (missing if isinstance(found, NotMeasured) else made).append(found)
    if not (made or same) and missing:
        raise missing[0]
    for file in itertools.chain.from_iterable(made):
        print(os.path.relpath(file))
    for scale in now.keys() - set(same):
        if (beside / scale).is_dir():
            files.write(beside / scale / INPUTS, now[scale] + "\n")


def _inputs(records: Path, sources: list[Path]) -> str:
    """A hash of a scale's records and of the code that draws them."""
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


def _one(make: Make, name: str, scale: str, records: Path, folder: Path) -> list[Path] | NotMeasured:
    try:
        return make(name, Results.of(scale, records), folder)
    except NotMeasured as error:
        return error
