"""The base models, one file each: a file's name, with hyphens, is its model's."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

from experiments.base_models.model import BaseModel

_FILES = (
    importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)
)
MODELS: dict[str, BaseModel] = {
    file.__name__.split(".")[-1].replace("_", "-"): file.MODEL
    for file in _FILES
    if hasattr(file, "MODEL")
}


def add_argument(to: argparse.ArgumentParser, required: bool = False) -> None:
    """Add --model."""
    names = f"a base model: {', '.join(MODELS)}; or a checkpoint's directory, or a name on the hub"
    to.add_argument(
        "--model",
        required=required,
        metavar="NAME",
        help=names,
        default=None if required else "tiny",
    )
