"""Short hashes: of what must agree for two runs to be the same, and of what a method computes."""

from __future__ import annotations

import hashlib
import json

from core import CLEX_FILE, files, rope
from core.geometry import RopeGeometry, RopeScaling


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
