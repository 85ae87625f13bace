"""The suites: what is measured of each base model, as Python that reads like a list of commands.

A suite is a file here; what it measures beyond the paper is a file of the same name in beyond/. The
parts that tiny and LLaMA2 share are in paper.py. A suite has

- OPTIONS, how each script of experiments/ is called for the model, in the suite and alone: several
  values are a tuple, and a value that depends on the model is a function of (model, factor);
- QUICK, what differs under --quick; None leaves a script out then;
- ABLATIONS, the settings that its ablations compare, if it has any. Of those that select the same
  pairs only one is measured;
- READS_ITS_OWN, if a user's data does not replace what some of them read;
- PARTS, functions that yield chains of commands: see :class:`experiments.suites.suite.Suite`. Those
  in FIRST come before the parts of all other files.
"""

from types import ModuleType

from core import discovery
from experiments import base_models
from experiments.base_models.model import BaseModel

OWN = "own-model"  # the suite of a user's own model


def find(model: str) -> list[ModuleType]:
    """The suite of a base model: the paper's part, then the part beyond it; nothing without one."""
    known = base_models.MODELS.get(model)
    if known is None and model != OWN:
        return []
    file = known.suite if known and known.suite else model.replace("-", "_")
    parts = f"{__name__}.{file}", f"{__name__}.beyond.{file}"
    return [part for part in map(discovery.module, parts) if part]


def calling(model: str, experiment: str) -> ModuleType | None:
    """The file that says how an experiment is called for a model: of the model's suite, else of
    that of a model of one's own."""
    files = (*find(model), *find(OWN))
    return next((file for file in files if experiment in getattr(file, "OPTIONS", {})), None)


def defaults(name: str, model: BaseModel, experiment: str, factor: float) -> dict:
    """How an experiment is called for the model of this name, if nothing else is asked for."""
    suite = calling(name, experiment)
    options = suite.OPTIONS[experiment] if suite else {}
    return {
        option: value(model, factor) if callable(value) else value
        for option, value in options.items()
    }


def quick(name: str, experiment: str) -> dict | None:
    """The options of an experiment that differ under --quick; None if it is left out."""
    suite = calling(name, experiment)
    return getattr(suite, "QUICK", {}).get(experiment, {})
