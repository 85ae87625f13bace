"""JSON files, as tests read and change them."""

import json
from pathlib import Path

import records


def read(file: Path) -> dict:
    return json.loads(file.read_text())


def write(file: Path, content) -> None:
    """With the folder in which it lies."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def write_record(file: Path, record: dict) -> None:
    """With the identity of its run and the hash of all."""
    whole = record | {"identity": records.identity(**record["run"])}
    write(file, whole | {"sha256": records.content_hash(whole)})


def edit(file: Path, **changes) -> None:
    """Change keys; None removes one. A file that is not there is begun."""
    content = (read(file) if file.exists() else {}) | changes
    write(file, {key: value for key, value in content.items() if value is not None})
