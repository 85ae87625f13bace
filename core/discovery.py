"""Modules by their names: what lies in a folder beyond/, which the paper's part imports by listing
alone, and what takes seconds to import."""

import importlib
import importlib.util
import pkgutil
from types import ModuleType
from typing import Any


def modules(package: str) -> list[ModuleType]:
    """The modules of a package in the order of their names, imported; none if there is no such
    package."""
    folder = module(package)
    entries = pkgutil.iter_modules(folder.__path__) if folder else ()
    names = [entry.name for entry in entries if not (entry.ispkg or entry.name.startswith("_"))]
    return [importlib.import_module(f"{package}.{name}") for name in sorted(names)]


def module(name: str) -> ModuleType | None:
    """The module of this dotted name, imported; None if it, or a package on the way to it, does not
    exist."""
    parent = name.rpartition(".")[0]
    exists = (not parent or module(parent)) and importlib.util.find_spec(name)
    return importlib.import_module(name) if exists else None


class _Later(ModuleType):
    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


def later(*names: str) -> Any:
    """The modules of these dotted names, or the one, imported when something of them is first used.

    It stands for imports at the top of a file whose command line is to be read at once, of what
    imports torch or transformers. The file states these imports for readers of code, too, `if
    TYPE_CHECKING`.
    """
    modules = tuple(map(_Later, names))
    return modules if len(modules) > 1 else modules[0]
