"""The scales, one file each: every size the experiments know. A file's name, with hyphens, is its scale's."""

from __future__ import annotations

import importlib
import pkgutil

from core.errors import InputError
from experiments.base_models.model import Model


def found() -> dict[str, Model]:
    """The scale of every file here, by name."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    modules = {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}") for name in names}
    return {name: module.MODEL for name, module in modules.items() if hasattr(module, "MODEL")}


MODELS = found()


def get(name: str) -> Model:
    """The scale of that name, or InputError."""
    if name not in MODELS:
        raise InputError(f"unknown scale {name!r}; choose one of {', '.join(MODELS)}.")
    return MODELS[name]
