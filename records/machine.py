"""Where a record is measured: software, device, commit, command, and the code that measures."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from records.store import BEYOND, ROOT, identity

# The code that every script measures or trains with, besides the scripts themselves.
CODE = (
    "core/**/*.py",
    "eval/**/*.py",
    "records/*.py",
    "experiments/kit/**/*.py",
    "experiments/training/**/*.py",
    "experiments/training/*.cpp",
)
_PACKAGES = ("torch", "transformers", "numpy")
_SCORING = ("lm_eval", "tokenizers")
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
    gpu = torch if torch is not None and torch.cuda.is_available() else None
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
    """The commit of this checkout, and whether its code was changed since."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], check=False, capture_output=True, text=True
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    head = git("rev-parse", "HEAD")
    # Changed records and rendered artifacts do not matter; changed code means that another version
    # than the commit ran.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "*.py", "*.lock")
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
