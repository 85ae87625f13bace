"""What a command line measures: a scale, or a model of the user's own, which is a scale by its name."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from core import files
from core.errors import InputError
from core.geometry import RopeGeometry
from experiments.lab import scales
from experiments.lab.scale import Scale


def add_arguments(to: argparse.ArgumentParser, default: str) -> None:
    """--scale and --model."""
    to.add_argument("--scale", default=default, help=f"one of {', '.join(scales.SCALES)} (default {default})")
    to.add_argument("--model", metavar="PATH_OR_NAME", help="this checkpoint instead of the scale's model")


class Source:
    """A scale or a checkpoint.

    Attributes:
        name: to load it by.
        scale: under which its records go.
    """

    def __init__(self, scale: str, model: str | None = None) -> None:
        self.name = model or scale
        self.scale = scale if model is None else scale_name(model)
        self.preset: Scale | None = scales.get(scale) if model is None else None

    @property
    def geometry(self) -> RopeGeometry:
        """The pre-training geometry, from the configuration alone."""
        if self.preset:
            return self.preset.geometry
        from experiments.lab import models  # needs transformers, which a scale's geometry does without

        return models.geometry(self.name)

    def n_hat(self, factor: float) -> int | None:
        """n̂ where the scale sets it by hand."""
        preset = self.preset or scales.SCALES.get(self.scale)  # a copy of the scale's own model
        return preset.n_hat.get(factor) if preset else None

    def facts(self, factor: float) -> dict:
        """What results/<scale>/scale.json says."""
        if self.preset:
            return self.preset.facts()
        from experiments.lab import models

        return models.facts(self.name, self.scale, factor)


def scale_name(model: str) -> str:
    """The scale that a user's own model is: the last part of its path or of its name on the hub."""
    if not model.strip():
        raise InputError("--model is empty; give a directory or a name on the Hugging Face hub.")
    path = Path(os.path.abspath(model)) if Path(model).is_dir() else Path(model)  # "." has a name, too
    return files.component(path.name)
