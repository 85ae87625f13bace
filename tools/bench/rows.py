"""Results of benchmarks as rows of a CSV file, each with the device and the versions that it was measured on."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from core import files
from experiments.kit.records import ROOT, environment

RESULTS = ROOT / "tools" / "bench" / "results"
COLUMNS = ("what", "model", "engine", "value", "unit", "device", "versions", "commit")


def row(what: str, model: str, engine: str, value: float | int | str, unit: str, **versions: str) -> dict[str, str]:
    """One measurement, on this machine, now.

    Args:
        what: what is measured, such as "ruler 4096, score".
        model, engine: what it is measured on.
        value, unit: the result.
        versions: versions of packages besides torch, transformers and numpy.
    """
    ran = environment()
    named = ran["packages"] | versions
    value = f"{value:.5g}" if isinstance(value, float) else str(value)
    stated = " ".join(f"{package}={version}" for package, version in named.items())
    return dict(zip(COLUMNS, (what, model, engine, value, unit, ran["device"], stated, ran["commit"])))


def append(file: Path, rows: list[dict[str, str]]) -> Path:
    """Print rows and add them to a CSV file, which is created if needed."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not file.is_file():
        writer.writeheader()
    writer.writerows(rows)
    print(text.getvalue(), end="", flush=True)
    before = file.read_text(encoding="utf-8") if file.is_file() else ""
    return files.write(file, before + text.getvalue())
