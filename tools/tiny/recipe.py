"""The recipe of each base model that is trained here: its shape, its tokenizer, its curriculum."""

from __future__ import annotations

from dataclasses import dataclass

from tools.tiny.curriculum import TEXT, Stage


@dataclass(frozen=True)
class Recipe:
    """How to train a base model from scratch.

    Attributes:
        vocabulary: the number of tokens of the BPE tokenizer.
        hidden, layers, intermediate: the Llama's sizes; its heads have `head_dim` dimensions.
        base, length: the base of its RoPE, and L.
        stages: the curriculum.
        looking_back: how many heads of layer 0 start out attending to the tokens just before.
        learning_rate: the peak; reached over `warmup` steps, and decayed to 2 % over the last `decay` of all steps.
        held_out: samples of each kind that are scored every `score_every` steps.
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
    learning_rate: float = 4e-4
    warmup: int = 100
    decay: float = 0.35
    spread: float = 0.05
    held_out: int = 24
    save_every: int = 100
    score_every: int = 200
    log_every: int = 10


_FIRST = {
    "repetition": 0.15, "recall": 0.15, "passkey": 0.08, "answering": 0.12, "copying": 0.08, "completion": 0.04,
    "classification": 0.03, TEXT: 0.35,
}  # fmt: skip
_SHORT = {
    "repetition": 0.08, "recall": 0.08, "passkey": 0.04, "answering": 0.08, "copying": 0.05, "completion": 0.03,
    "classification": 0.03, "tracking": 0.03, "counting": 0.02, TEXT: 0.56,
}  # fmt: skip
_ALL = {
    "repetition": 0.02, "recall": 0.07, "passkey": 0.05, "answering": 0.04, "copying": 0.03, "completion": 0.02,
    "classification": 0.02, "tracking": 0.02, "counting": 0.02, "longbench": 0.12, "choice": 0.05, TEXT: 0.54,
}  # fmt: skip

RECIPES: dict[str, Recipe] = {
    "tiny": Recipe(
        vocabulary=4096, hidden=256, layers=4, intermediate=704, head_dim=64, base=1300.0, length=1024,
        stages=(
            Stage(128, 1_638_400, 4096, 3, _FIRST, reach=512),
            Stage(256, 10_240_000, 4096, 6, _SHORT, reach=1024),
            Stage(1024, 5_242_880, 8192, 16, _ALL),
        ),
    ),
    "smoke": Recipe(
        vocabulary=300, hidden=64, layers=2, intermediate=96, head_dim=32, base=300.0, length=320, looking_back=1,
        stages=(Stage(256, 5120, 1024, 1, _SHORT), Stage(320, 6400, 1280, 1, _SHORT)), warmup=2,
        held_out=2, save_every=4, score_every=5, log_every=1,
    ),
}  # fmt: skip
