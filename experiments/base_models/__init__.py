"""The base models, one file each: a file's name, with hyphens, is its model's."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

from core.errors import InputError
from experiments.base_models.model import Model


def _models() -> dict[str, Model]:
    """The model of every file here, by name."""
    files = [importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)]
    return {file.__name__.split(".")[-1].replace("_", "-"): file.MODEL for file in files if hasattr(file, "MODEL")}


MODELS = _models()


def get(name: str) -> Model:
    """The model of that name, or InputError."""
    if name not in MODELS:
        raise InputError(f"unknown base model {name!r}; choose one of {', '.join(MODELS)}.")
    return MODELS[name]


def add_argument(to: argparse.ArgumentParser, required: bool = False) -> None:
    """Add --model."""
    names = f"a base model: {', '.join(MODELS)}; or a checkpoint's directory, or a name on the hub"
    to.add_argument("--model", required=required, metavar="NAME", help=names, default=None if required else "tiny")
