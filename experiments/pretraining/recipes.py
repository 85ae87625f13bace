"""What each base model that is trained here is made of: its shape, its tokenizer, its curriculum."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.pretraining.curriculum import TEXT, Stage


@dataclass(frozen=True)
class Recipe:
    """A base model from nothing.

    Attributes:
        vocabulary: tokens of the BPE.
        hidden, layers, intermediate: of the Llama; its heads have `head_dim` dimensions.
        base, length: of its RoPE, and L.
        looking_back: heads of layer 0 that start out attending to the tokens just before.
        learning_rate: the peak; warmed up over `warmup` steps, decayed to zero over the last `decay` of them.
        stages: the curriculum.
        held_out: samples of each kind to score every `score_every` steps.
        save_every, log_every: steps between checkpoints, and between losses in the journal.
    """

    vocabulary: int
    hidden: int
    layers: int
    intermediate: int
    head_dim: int
    base: float
    length: int
    stages: tuple[Stage, ...]
    looking_back: int = 3
    learning_rate: float = 2e-3
    warmup: int = 50
    decay: float = 0.2
    spread: float = 0.05
    held_out: int = 24
    save_every: int = 100
    score_every: int = 200
    log_every: int = 10


_FIRST = {"recall": 0.35, "passkey": 0.35, "copying": 0.1, "answering": 0.1, "completion": 0.1}
_MORE = {
    "recall": 0.3, "passkey": 0.15, "copying": 0.1, "answering": 0.1, "completion": 0.05, "tracking": 0.05,
    "counting": 0.03, "classification": 0.07, TEXT: 0.15,
}  # fmt: skip
_MOST = {
    "recall": 0.25, "passkey": 0.1, "copying": 0.05, "answering": 0.1, "completion": 0.05, "tracking": 0.05,
    "counting": 0.03, "classification": 0.07, TEXT: 0.3,
}  # fmt: skip

RECIPES: dict[str, Recipe] = {
    "tiny": Recipe(
        vocabulary=4096, hidden=256, layers=4, intermediate=704, head_dim=64, base=1300.0, length=1024,
        stages=(
            Stage(64, 1_200_000, 2048, 1, _FIRST),
            Stage(128, 1_260_000, 2048, 3, _FIRST),
            Stage(128, 3_000_000, 2048, 3, _FIRST, reach=1024),
            Stage(256, 5_000_000, 4096, 6, _MORE, reach=1024),
            Stage(1024, 6_000_000, 8192, 16, _MOST),
        ),
    ),
    "smoke": Recipe(
        vocabulary=300, hidden=64, layers=2, intermediate=96, head_dim=32, base=300.0, length=320, looking_back=1,
        stages=(Stage(256, 5120, 1024, 1, _FIRST), Stage(320, 6400, 1280, 1, _MOST)),
        held_out=2, save_every=4, score_every=5, log_every=1, warmup=2,
    ),
}  # fmt: skip
