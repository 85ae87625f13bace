"""The command line that renders tables and figures from records, for chosen artifacts and models.

An artifact is a module of tables/ or figures/ or, beyond the paper, of their folder beyond/; it has the module's name.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from analysis import results
from analysis.results import NotMeasured, Results, root
from core import discovery, files
from core.errors import InputError
from experiments.kit import command_line
from experiments.kit.records import ROOT

INPUTS = "inputs.sha256"  # beside a model's artifacts: the hash of what they were rendered from


@dataclass(frozen=True)
class Rendered:
    """What came of an artifact.

    Attributes:
        files: those that were written.
        text: what is printed of an artifact that was asked for by name.
        notes: what is said on the terminal of any other.
    """

    files: list[Path]
    text: str = ""
    notes: tuple[str, ...] = ()


Make = Callable[[str, Results, Path], Rendered]


def modules(kind: str) -> dict[str, str]:
    """The dotted names of the modules of tables or figures by the name of their artifact, the paper's first."""
    return {name.rpartition(".")[2]: name for name in [*discovery.names(kind), *discovery.names(f"{kind}.beyond")]}


def place(module: str) -> str:
    """Where the artifact of a module lies in a model's folder: its file without suffix, as beyond/learned."""
    return module.partition(".")[2].replace(".", "/")


def run(doc: str, kind: str, make: Make) -> None:
    """Render artifacts of a kind into KIND/MODEL/ beside the records.

    Artifacts without records are skipped. It is an error if nothing at all can be rendered. A model is skipped if
    neither its records, nor the code that reads them, nor what was rendered from them have changed since the last run,
    unless artifacts are asked for by name.

    Args:
        kind: "tables" or "figures".
        make: renders one artifact of a model into a folder.
    """
    known = list(modules(kind))
    parser = command_line.parser(doc, prog=f"python -m {kind}")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"what to render, among {', '.join(known)} (default: all)"
    )
    parser.add_argument("--model", help="the model to render (default: every model that has records)")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()

    folder = results.place(arguments.model, arguments.results)
    models = [arguments.model] if arguments.model else results.models(folder)
    if not models:
        raise InputError(f"there are no records under {folder}; measure something, or give --results.")
    beside = root(folder) / kind
    unchanged = [] if arguments.names else [name for name in models if _unchanged(kind, folder / name, beside / name)]
    for model in unchanged:
        print(f"unchanged: {os.path.relpath(beside / model)}")
    changed = [model for model in models if model not in unchanged]
    jobs = [(make, name, model, folder, beside / model) for model in changed for name in arguments.names or known]
    outcomes = _each(jobs)
    rendered = [outcome for outcome in outcomes if isinstance(outcome, Rendered)]
    missing = [outcome for outcome in outcomes if isinstance(outcome, NotMeasured)]
    if missing and not (rendered or unchanged):
        raise missing[0]
    for artifact in rendered:
        if arguments.names and artifact.text:
            print(artifact.text)
        else:
            for note in artifact.notes:
                print(f"note: {note}", file=sys.stderr)
        for file in artifact.files:
            print(os.path.relpath(file))
    for model in changed:
        if not arguments.names and (beside / model).is_dir():
            files.write(beside / model / INPUTS, _inputs(kind, folder / model, beside / model) + "\n")


def _unchanged(kind: str, records: Path, rendered: Path) -> bool:
    file = rendered / INPUTS
    last = file.read_bytes().decode(errors="replace").strip() if file.is_file() else None
    return last == _inputs(kind, records, rendered)


def _inputs(kind: str, records: Path, rendered: Path) -> str:
    """A hash of a model's records, of the code that reads and draws them, of the paper's numbers, and of the outcome.

    The outcome counts, so that a file that was removed or edited is rendered again.
    """
    digest = hashlib.sha256(f"{version('matplotlib')} {version('numpy')}".encode())
    for folder, pattern in [(records, "*.json"), (rendered, "*"), *sources(kind)]:
        for file in sorted(folder.rglob(pattern)):
            if file.is_file() and file != rendered / INPUTS:
                digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def sources(kind: str) -> list[tuple[Path, str]]:
    """What an artifact is made by and from besides records, as (folder, pattern of its files)."""
    code = [(ROOT / folder, "*.py") for folder in ("core", "eval", "analysis", kind)]
    return [*code, (ROOT / "analysis", "*.csv"), (ROOT / "results" / "paper", "*.csv")]


def _each(jobs: list[tuple]) -> list[Rendered | NotMeasured]:
    """Do the jobs in this process, or if there are many, in several processes."""
    workers = min(os.cpu_count() or 1, len(jobs) // 4)
    if workers < 2:
        return [_one(*job) for job in jobs]
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), command_line.end_with_parent) as pool:
        return list(pool.map(_one, *zip(*jobs)))


def _one(make: Make, name: str, model: str, records: Path, folder: Path) -> Rendered | NotMeasured:
    try:
        return make(name, Results.of(model, records), folder)
    except NotMeasured as error:
        return error
