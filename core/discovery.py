"""Modules by their names: what lies in a folder beyond/, which the paper's part imports by listing
alone, and what takes seconds to import."""

import importlib
import importlib.util
import pkgutil
from types import ModuleType


def names(package: str) -> list[str]:
    """The dotted names of the modules in a package, in their order; none if there is no such
    package."""
    folder = module(package)
    entries = pkgutil.iter_modules(folder.__path__) if folder else ()
    return sorted(
        f"{package}.{entry.name}"
        for entry in entries
        if not (entry.ispkg or entry.name.startswith("_"))
    )


def modules(package: str, folder: str = "beyond") -> list[ModuleType]:
    """The modules of PACKAGE.FOLDER in the order of their names, imported; none if there is no such
    folder."""
    return [importlib.import_module(name) for name in names(f"{package}.{folder}")]


def module(name: str) -> ModuleType | None:
    """The module of this dotted name, imported; None if it, or a package on the way to it, does not
    exist."""
    parent = name.rpartition(".")[0]
    exists = (not parent or module(parent)) and importlib.util.find_spec(name)
    return importlib.import_module(name) if exists else None


class _Later(ModuleType):
    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


def later(name: str) -> ModuleType:
    """The module of this dotted name, imported when something of it is first used.

    It stands for `import` at the top of a file whose command line is to be read at once, for what
    imports torch or transformers.
    """
    return _Later(name)
