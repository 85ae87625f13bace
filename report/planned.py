"""What fine-tunes and suites take, by the dry run's arithmetic, for the page about the paper's model.

Torch is imported when it is asked, as parameters are counted on a model without data; all other pages do without.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.base_models import MODELS

GPUS, MEMORY = 8, 80  # of the paper's machine; GB of each


@dataclass(frozen=True)
class Training:
    """A fine-tune: length of its sequences, hours, and GB of a GPU's memory, of the host's memory and of disk."""

    length: int
    hours: float
    memory: float
    host: float
    disk: float


def training(model: str, factor: float) -> Training:
    """A model's fine-tune by its own settings, as `experiments.finetune --dry-run` counts it."""
    from experiments.kit import load_model
    from experiments.training import budget

    preset, config = MODELS[model], load_model.architecture(model)
    length = round(preset.geometry.context_length * factor)
    settings = budget.fitted(config, preset.training, length, GPUS, MEMORY)
    plan = budget.Plan(length, preset.training.steps[factor], settings, GPUS, MEMORY)
    return Training(
        length,
        budget.hours(config, plan),
        sum(budget.memory(config, plan).values()),
        budget.host_memory(config, plan),
        sum(budget.disk(config, plan).values()),
    )


def suite(model: str) -> str:
    """What `experiments.rerun --plan` prints of a model."""
    from experiments.kit import cost

    plan = _plan(model)
    return cost.report(plan, [*plan.chains(), *plan.timing()], GPUS, MEMORY)


def whole(model: str) -> tuple[float, float]:
    """Days on the paper's machine that a model's suite takes, and GB of disk."""
    from experiments.kit import cost

    plan = _plan(model)
    found = cost.sum_of(cost.rows(plan, [*plan.chains(), *plan.timing()], GPUS, MEMORY))
    return found.hours / GPUS / 24, found.disk + cost.going_on(plan, GPUS)


def _plan(model: str):
    from experiments.kit.plan import Plan

    return Plan(model, MODELS[model], Path("build"), Path("build/results"))
