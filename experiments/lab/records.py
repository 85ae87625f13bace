"""Records: one JSON file per finished run, under results/<scale>/<experiment>/<run>.json.

A record says what was run, on what, what came out and how long it took. It is written once, atomically. Tables
and figures read records through :func:`load` and nothing else; this module needs neither torch nor a model.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from core.errors import InputError

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "results"
SCALE = "scale.json"  # beside a scale's records, says what they are of
MINIATURE = "miniature.json"  # beside generated samples, says what they are a miniature of
_PACKAGES = ("torch", "transformers", "numpy")


def run_name(method: str, factor: float, options: dict, seed: int | None = None) -> str:
    """A file name that tells runs apart: the method, its options that were given, the factor, a fine-tune's seed.

    Of an option that is a path only the last part is named.
    """
    given = (f"{key.replace('_', '-')}={Path(str(value)).name}" for key, value in sorted(options.items()))
    return "_".join([method, *given, f"s={factor:g}", *([] if seed is None else [f"seed={seed}"])])


def run_of(record: dict) -> str:
    """The run that a record is of; behind it, the record's own name may say on what it was measured."""
    seed = record.get("training", {}).get("seed")
    return run_name(record["method"], record["factor"], record["options"], seed)


def identity(**parts) -> str:
    """A short hash of everything that must agree for two runs to be the same run."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def path(results: Path, scale: str, experiment: str, run: str) -> Path:
    """Where a run's record belongs."""
    return Path(results) / scale / experiment / f"{run}.json"


def is_done(file: Path, run_identity: str) -> bool:
    """Whether `file` records this very run."""
    return file.exists() and json.loads(file.read_text())["identity"] == run_identity


def write(file: Path, record: dict) -> Path:
    """Write a record and what it ran on, atomically: a reader sees all of it or nothing."""
    return put(file, record | {"environment": environment()})


def put(file: Path, record: dict) -> Path:
    """Write a record as it is, atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    os.replace(partial, file)
    return file


def check_scale(results: Path, scale: str, facts: dict) -> dict:
    """What results/<scale>/scale.json says, empty where there is none yet.

    Args:
        facts: as of :func:`state_scale`.

    Raises:
        InputError: the records there are another model's.
    """
    file = Path(results) / scale / SCALE
    known = json.loads(file.read_text()) if file.is_file() else {}
    for fact in ("geometry", "sha256"):
        if known.get(fact) and facts.get(fact) and known[fact] != facts[fact]:
            raise InputError(
                f"{file.parent} holds records of another model of that name ({known['model']}); give another "
                "--results, or rename the model's directory."
            )
    return known


def state_scale(results: Path, scale: str, facts: dict) -> Path:
    """Write results/<scale>/scale.json, or add the factors to the one that is there.

    Args:
        facts: title, model, geometry, factors, n̂ by factor, which options its suite varies; sha256 of its weights,
            where they are at hand.

    Raises:
        InputError: the records there are another model's.
    """
    known = check_scale(results, scale, facts)
    factors = sorted({*known.get("factors", []), *facts["factors"]})
    wanted = facts | known | {"factors": factors}
    file = Path(results) / scale / SCALE
    return file if wanted == known else put(file, wanted)


def load(results: Path, scale: str, experiment: str) -> list[dict]:
    """All records of an experiment at a scale, in the order of their names.

    Raises:
        InputError: there are none, naming the command that makes them.
    """
    files = sorted((Path(results) / scale / experiment).glob("*.json"))
    if not files:
        raise InputError(
            f"no records under {Path(results) / scale / experiment}; "
            f"make them with `python -m experiments.{experiment} --scale {scale}`."
        )
    return [json.loads(file.read_text()) for file in files]


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with open(file, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def benchmark(data: Path | None) -> dict:
    """What a record says of samples that are no benchmark's own; nothing of others."""
    file = Path(data or "") / MINIATURE
    return json.loads(file.read_text()) if data and file.is_file() else {}


def environment() -> dict:
    """Versions, device and commit of this run."""
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            pass
    return {"python": platform.python_version(), "packages": packages, "device": _device(), "commit": _commit()}


def _device() -> str:
    torch = sys.modules.get("torch")  # a run that never imported torch ran on the CPU
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{os.cpu_count()} × {_processor()}"


def _processor() -> str:
    """As Linux names it, else the architecture (`platform.processor()` is empty under most distributions)."""
    file = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*: (.+)$", file.read_text() if file.is_file() else "", re.MULTILINE)
    return " ".join(name[1].split()) if name else f"{platform.machine()} CPU"


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=False, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD")
    # Records and rendered artifacts may differ; changed code is what makes a commit not the one that ran.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "*.py", "*.lock")
    return (commit or "unknown") + (" with changes" if changed else "")
