"""What lies in a folder `beyond/`, listed, so that the rest works the same without that folder."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def module(name: str) -> ModuleType | None:
    """The module called `name`, or None if there is no such file."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise  # it is there, and something that it imports is not


def modules(package: str) -> list[ModuleType]:
    """The modules of `package`.beyond, sorted by name; none if there is no such folder."""
    beyond = module(f"{package}.beyond")
    names = sorted(found.name for found in pkgutil.iter_modules(beyond.__path__)) if beyond else []
    return [importlib.import_module(f"{package}.beyond.{name}") for name in names]
