"""The base models, one file each: a file's name, with hyphens, is its model's."""

import argparse
import importlib
import importlib.util
import pkgutil
from pathlib import Path

from experiments.base_models.model import BaseModel

MODELS: dict[str, BaseModel] = {}
for _file in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_file.name}")
    if hasattr(_module, "MODEL"):
        MODELS[_file.name.replace("_", "-")] = _module.MODEL


def add_argument(to: argparse.ArgumentParser, required: bool = False) -> None:
    """Add --model; its help lists the base models whose files are here or on the hub."""
    here = ", ".join(name for name, model in MODELS.items() if _can_be_had(model))
    to.add_argument(
        "--model",
        required=required,
        metavar="NAME",
        help=f"a base model: {here}; or a checkpoint's directory, or a name on the hub",
        default=None if required else "tiny",
    )


def _can_be_had(model: BaseModel) -> bool:
    """Whether its files are in this checkout, in an installed package, or on the hub."""
    kind, _, place = model.source.partition(":")
    if kind == "repository":
        return (Path(__file__).parents[2] / place).is_dir()
    if kind == "package":
        return importlib.util.find_spec(place.partition("/")[0]) is not None
    return True
