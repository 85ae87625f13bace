"""A base model, and how it is fine-tuned. What is measured of it is in experiments/suites/."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core import rope
from core.geometry import RopeGeometry

# The options that ablations vary. Settings that differ from the model's own go to the ablations'
# tables.
ABLATED = ("n_hat", "intervals", "attention_factor")


def papers_n_hat(geometry: RopeGeometry) -> dict[int, int]:
    """The paper's n̂ by scaling factor: 80 of 128 dimensions at s = 2 and 64 at s = 4 (section
    4.1), as shares of d."""
    return {2: 2 * round(geometry.head_dim * 5 / 16), 4: 2 * round(geometry.head_dim / 4)}


@dataclass(frozen=True)
class Training:
    """The settings of a model's fine-tuning; the defaults are the paper's (section 4.1 and its
    appendix).

    AdamW runs at a constant learning rate without warm-up. The paper does not mention gradient
    clipping; 1 is the Trainer's default, which CLEX's script uses. YaRN's clips under DeepSpeed
    alone.

    Attributes:
        steps: optimizer steps for each scaling factor.
        batch: sequences per step, over all devices.
        device_batch: sequences per device at a time; gradients are accumulated up to `batch`.
        learning_rate, betas, weight_decay: AdamW's.
        clip: the largest gradient norm; larger gradients are scaled down to it.
        dtype: the dtype of matrix products, "bfloat16" or "float32"; None for bfloat16 on a GPU
            that supports it, else float32.
        checkpointing: recompute activations in the backward pass instead of keeping them.
        save_every: steps between checkpoints.
        corpus: "hub" (PG19), "books" (the packaged books, except the one that is scored), or a
            directory.
        per_book: the most sequences that a book of the corpus gives; see
            :func:`experiments.training.corpus.pack`.
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
    corpus: str = "hub"
    per_book: int | None = None


@dataclass(frozen=True)
class BaseModel:
    """A base model and the settings of its fine-tuning.

    Attributes:
        title: the model's name in tables and figures.
        source: a hub name, or "package:NAME/FILE.gguf" for weights in a Python package, or
            "repository:PATH" for a directory of this repository.
        geometry: head dimension d, base and pre-training length L.
        factors: the scaling factors s that are compared.
        n_hat: the paper's n̂ by factor, see :func:`papers_n_hat`.
        training: the settings of fine-tuning.
        architecture: a Llama's sizes, so that a dry run needs neither weights nor network.
        gpu_dtype: the default dtype for evaluating its models on a GPU; None for float32.
        suite: the file of its suite; by default that of its name.
    """

    title: str
    source: str
    geometry: RopeGeometry
    factors: tuple[float, ...] = (2, 4)
    n_hat: dict[int, int] = field(default_factory=dict)
    training: Training = field(default_factory=Training)
    architecture: dict[str, int] | None = None
    gpu_dtype: str | None = None
    suite: str = ""

    def comparison(self, factor: float) -> list[tuple[str, dict]]:
        """The methods of an untrained comparison, with their options."""
        return untrained(self.geometry, self.n_hat, factor)

    def facts(self) -> dict:
        """The contents of results/MODEL/model.json, which readers of the records use."""
        return {
            "title": self.title,
            "model": self.source,
            "geometry": self.geometry.to_dict(),
            "factors": list(self.factors),
            "n_hat": {f"{factor:g}": n_hat for factor, n_hat in self.n_hat.items()},
            "ablated": list(ABLATED),
        }


def untrained(
    geometry: RopeGeometry, n_hat: Mapping[float, int], factor: float
) -> list[tuple[str, dict]]:
    """Every method that needs no training, and DPRoPE also at n̂ where there is one for this
    factor."""
    settings = []
    for name, method in rope.METHODS.items():
        if method.ready_for(geometry):
            settings.append((name, {}))
        if name == rope.PROPOSED and factor in n_hat:
            settings.append((name, {"n_hat": n_hat[factor]}))
    return settings


def own_model(
    name: str, source: str, geometry: RopeGeometry, factors: tuple[float, ...]
) -> BaseModel:
    """A model of one's own, as suites and comparisons take a base model."""
    return BaseModel(name, source, geometry, factors, papers_n_hat(geometry))
