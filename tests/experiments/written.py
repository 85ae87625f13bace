"""What an experiment on one model has written below a folder of results, and command lines."""

import json
from collections.abc import Iterable
from pathlib import Path

import records
from tests.files import read

PASSKEY = "passkey --lengths 400 --depths 2 --keys 1"  # two samples


def record_file(results: Path) -> Path:
    """The only record."""
    (file,) = (file for file in results.rglob("*.json") if file.name != records.MODEL)
    return file


def record(results: Path) -> dict:
    """The content of the only record."""
    return read(record_file(results))


def journal_files(results: Path) -> list[Path]:
    """One for each run and process."""
    return sorted((results.parent / "runs").rglob("*.jsonl"))


def journal(results: Path) -> dict:
    """The value of each sample, of all journals, none of which repeats a sample."""
    lines = [line for file in journal_files(results) for line in file.read_text().splitlines()]
    values = {key: entry["value"] for key, entry, _ in map(json.loads, lines)}
    assert len(values) == len(lines)
    return values


def changed(usual: Iterable, more: Iterable) -> list[str]:
    """The words of a usual command line, in which options are changed or added."""
    options: dict[str, list[str]] = {}
    for word in map(str, [*usual, *more]):
        if word.startswith("--"):
            options[word] = values = []
        else:
            values.append(word)
    return [word for option, values in options.items() for word in (option, *values)]
