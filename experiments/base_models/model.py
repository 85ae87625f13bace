"""A scale: a base model, and the size of the paper's experiments on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from core import rope
from core.geometry import RopeGeometry
from experiments.kit.suite import Suite

# The options that a suite's ablations vary. Settings that differ from the scale's own go to the ablations' tables.
ABLATED = ("n_hat", "intervals", "attention_factor")


@dataclass(frozen=True)
class Training:
    """The settings of a scale's fine-tuning; the defaults are the paper's (section 4.1 and its appendix).

    AdamW runs at a constant learning rate without warm-up. The paper does not mention gradient clipping; 1 is the
    default of the Trainer and of the fine-tuning scripts of the methods that the paper compares with.

    Attributes:
        steps: optimizer steps for each scaling factor.
        batch: sequences per step, over all devices.
        device_batch: sequences per device at a time, unless a GPU takes as many as fit in its memory; gradients are
            accumulated up to `batch`.
        learning_rate, betas, weight_decay: AdamW's.
        clip: the largest gradient norm; larger gradients are scaled down to it.
        dtype: the dtype of matrix products, "bfloat16" or "float32"; None for bfloat16 on a GPU that supports it, else
            float32.
        checkpointing: recompute activations in the backward pass instead of keeping them.
        save_every: steps between checkpoints.
        data: "hub" (PG19), "books" (the packaged books, except the one that is scored), or a directory.
    """

    steps: dict[int, int] = field(default_factory=lambda: {2: 1000, 4: 500})
    batch: int = 64
    device_batch: int = 1
    learning_rate: float = 2e-5
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    clip: float = 1.0
    dtype: str | None = None
    checkpointing: bool = True
    save_every: int = 50
    data: str = "hub"


@dataclass(frozen=True)
class Model:
    """A base model and the size of the paper's experiments on it.

    Attributes:
        title: the model's name in tables and figures.
        model: a hub name, or "package:NAME/FILE.gguf" for weights in a Python package, or "repository:PATH" for a
            directory of this repository, or "random".
        geometry: head dimension d, base and pre-training length L.
        factors: the scaling factors s that are compared.
        n_hat: n̂, the number of interpolated dimensions, for each factor where it is set by hand.
        compared: the methods that go through all untrained measurements of the suite; None for all methods. The others
            go through those in Suite.further only.
        covered_length: the length that most of pre-training covered, if it is known to be less than L.
        fine_tuned: the methods that are fine-tuned; by default those in the paper's tables.
        trains_n_hat: whether the paper's own method is fine-tuned only at n̂, as in the paper. Then t = 0 is measured
            without training, and a fine-tune that states neither t nor n̂ uses n̂.
        training: the settings of fine-tuning.
        suite: what experiments.rerun measures; None if the scale has no suite.
        architecture: a Llama's sizes, so that a dry run needs neither weights nor network; they define the model
            "random".
        gpu_dtype: the default dtype for evaluating its models on a GPU; None for float32.
    """

    title: str
    model: str
    geometry: RopeGeometry
    factors: tuple[int, ...] = (2, 4)
    n_hat: dict[int, int] = field(default_factory=dict)
    compared: tuple[str, ...] | None = None
    covered_length: int | None = None
    fine_tuned: tuple[str, ...] = tuple(name for name, method in rope.METHODS.items() if method.published)
    trains_n_hat: bool = False
    training: Training = field(default_factory=Training)
    suite: Suite | None = None
    architecture: dict[str, int] | None = None
    gpu_dtype: str | None = None

    def comparison(self, factor: float) -> list[tuple[str, dict]]:
        """The methods of an untrained comparison, with their options."""
        settings = []
        for name, method in rope.METHODS.items():
            if method.ready:
                settings.append((name, {}))
            if name == rope.OURS and factor in self.n_hat:
                settings.append((name, {"n_hat": self.n_hat[factor]}))
            if name == rope.COVERED and self.covered_length:
                settings.append((name, {"covered_length": self.covered_length}))
            settings += [(name, options) for options in method.variants]
        return settings

    def trained(self, factor: float) -> list[tuple[str, dict]]:
        """The methods of a fine-tuned comparison, with their options."""
        learned = [(name, {}) for name, method in rope.METHODS.items() if method.start]
        settings = [entry for entry in [*self.comparison(factor), *learned] if entry[0] in self.fine_tuned]
        settings = [entry for entry in settings if entry[1] not in rope.METHODS[entry[0]].variants]
        return [(name, options) for name, options in settings if options or not self.defaults(name, factor)]

    def defaults(self, method: str, factor: float) -> dict:
        """The options of a fine-tune for which no options say which pairs to choose."""
        chosen = self.trains_n_hat and method == rope.OURS and factor in self.n_hat
        return {"n_hat": self.n_hat[factor]} if chosen else {}

    def temperature_swapped(self, factor: float) -> list[tuple[str, dict]]:
        """YaRN without its attention temperature, and DPRoPE at n̂ with it.

        Comparing these shows how much of the methods' difference comes from the choice of pairs.
        """
        own = round(rope.scale(self.geometry, rope.RIVAL, factor).attention_factor, 4)
        n_hat = {"n_hat": self.n_hat[factor]} if factor in self.n_hat else {}
        return [(rope.RIVAL, {"attention_factor": 1.0}), (rope.OURS, {**n_hat, "attention_factor": own})]

    def facts(self) -> dict:
        """The contents of results/<scale>/model.json, which readers of the records use."""
        return {
            "title": self.title,
            "model": self.model,
            "geometry": asdict(self.geometry),
            "factors": list(self.factors),
            "n_hat": {f"{factor:g}": n_hat for factor, n_hat in self.n_hat.items()},
            "ablated": list(ABLATED),
        }
