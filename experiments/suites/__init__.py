"""The suites: what is measured of each base model, as Python that reads like a list of commands.

A suite is a file here; what it measures beyond the paper is a file of the same name in beyond/. Its
steps are how each experiment is called, also when it is called alone. PARTS are its functions that
yield chains of commands; chains for the same model run as one, and a chain that needs the
checkpoint of another runs last and alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from core import discovery
from experiments.base_models.model import Model

OWN = "own-model"  # the suite of a user's own model


def find(model: str) -> list[ModuleType]:
    """The suite of a base model: the paper's part, then the part beyond it if there is one; nothing
    without a suite.

    A file is the suite of the base model of its name, with hyphens, unless it names others as
    MODELS.
    """
    for file in pkgutil.iter_modules(__path__):
        suite = importlib.import_module(f"{__name__}.{file.name}")
        if hasattr(suite, "PARTS") and model in getattr(
            suite, "MODELS", (file.name.replace("_", "-"),)
        ):
            beyond = discovery.module(f"{__name__}.beyond.{file.name}")
            return [suite, beyond] if beyond else [suite]
    return []


def defaults(name: str, model: Model, experiment: str, factor: float) -> dict:
    """How a model's suite calls an experiment; one that it does not call, as the suite of a model
    of one's own."""
    from experiments.suites.steps import Step

    for suite in (*find(name), *find(OWN)):
        for step in vars(suite).values():
            if isinstance(step, Step) and step.experiment == experiment:
                return step.at(model, factor)
    return {}
