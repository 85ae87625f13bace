"""What a command line measures: a scale, or the user's own model, whose records go under its own name."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from core import files
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments import base_models
from experiments.base_models.model import Scale


def add_arguments(to: argparse.ArgumentParser, default: str) -> None:
    """Add --scale and --model."""
    to.add_argument(
        "--scale",
        default=default,
        help=f"use the model of this scale: one of {', '.join(base_models.SCALES)} (default {default})",
    )
    to.add_argument(
        "--model", metavar="PATH_OR_NAME", help="use this checkpoint instead: a directory or a name on the hub"
    )


class Source:
    """A scale or a checkpoint.

    Attributes:
        name: the name to load it by.
        scale: the scale that its records go to.
    """

    def __init__(self, scale: str, model: str | None = None) -> None:
        self.name = model or scale
        self.scale = scale if model is None else scale_name(model)
        self.preset: Scale | None = base_models.get(scale) if model is None else None

    @property
    def geometry(self) -> RopeGeometry:
        """The pre-training geometry, from the configuration alone."""
        if self.preset:
            return self.preset.geometry
        from experiments.kit import load_model

        return load_model.geometry(self.name)

    def n_hat(self, factor: float) -> int | None:
        """n̂ if the scale sets it by hand, else None."""
        preset = self.preset or base_models.SCALES.get(self.scale)  # the latter for a copy of the scale's own model
        return preset.n_hat.get(factor) if preset else None

    def facts(self, factor: float) -> dict:
        """The contents of results/<scale>/scale.json."""
        if self.preset:
            return self.preset.facts()
        from experiments.kit import load_model

        return load_model.facts(self.name, self.scale, factor)


def scale_name(model: str) -> str:
    """The scale's name for a user's own model: the last part of its path or of its name on the hub."""
    if not model.strip():
        raise InputError("--model is empty; give a directory or a name on the Hugging Face hub.")
    path = Path(os.path.abspath(model)) if Path(model).is_dir() else Path(model)  # so that "." has a name
    return files.component(path.name)
