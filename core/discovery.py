"""What lies in a folder beyond/, if it is there: the paper's part of a package imports it by listing alone."""

import importlib
import importlib.util
import pkgutil
from types import ModuleType


def modules(package: str, folder: str = "beyond") -> list[ModuleType]:
    """The modules of PACKAGE.FOLDER in the order of their names, imported; none if there is no such folder."""
    found = module(f"{package}.{folder}")
    names = sorted(entry.name for entry in pkgutil.iter_modules(found.__path__)) if found else []
    return [importlib.import_module(f"{package}.{folder}.{name}") for name in names]


def module(name: str) -> ModuleType | None:
    """The module of this dotted name, imported; None if it, or a package on the way to it, does not exist."""
    parent = name.rpartition(".")[0]
    exists = (not parent or module(parent)) and importlib.util.find_spec(name)
    return importlib.import_module(name) if exists else None
