"""The base models, one file each: a file's name, with hyphens, is its model's."""

from __future__ import annotations

import importlib
import pkgutil

from core import discovery
from core.errors import InputError
from experiments.base_models.model import Model


def found() -> dict[str, Model]:
    """The model of every file here and in beyond/, by name."""
    here = [importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)]
    files = [*here, *discovery.modules(__name__)]
    return {file.__name__.split(".")[-1].replace("_", "-"): file.MODEL for file in files if hasattr(file, "MODEL")}


MODELS = found()


def get(name: str) -> Model:
    """The model of that name, or InputError."""
    if name not in MODELS:
        raise InputError(f"unknown base model {name!r}; choose one of {', '.join(MODELS)}.")
    return MODELS[name]
