"""The base models, one file each: a file's name, with hyphens, is its model's."""

import argparse
import importlib
import pkgutil

from experiments.base_models.model import BaseModel

MODELS: dict[str, BaseModel] = {}
for _file in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_file.name}")
    if hasattr(_module, "MODEL"):
        MODELS[_file.name.replace("_", "-")] = _module.MODEL


def add_argument(to: argparse.ArgumentParser, required: bool = False) -> None:
    """Add --model."""
    to.add_argument(
        "--model",
        required=required,
        metavar="NAME",
        help=f"a base model: {', '.join(MODELS)}; or a checkpoint's directory, or a name on the "
        "hub",
        default=None if required else "tiny",
    )
