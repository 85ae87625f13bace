"""The recipe of the base model that is trained here: its shape, its tokenizer, its curriculum."""

from dataclasses import dataclass
from typing import Any

from tools.tiny.curriculum import TEXT, Stage


@dataclass(frozen=True)
class Recipe:
    """How to train a base model from scratch.

    Attributes:
        model: the arguments of its LlamaConfig; `vocab_size` is the most tokens of the BPE
            tokenizer.
        stages: the curriculum.
        looking_back: how many heads of layer 0 start out attending to the tokens just before.
        training: the Trainer's arguments. The learning rate is the peak.
        decay: the share of all steps, at the end, in which the learning rate falls to 2 %.
    """

    model: dict[str, Any]
    stages: tuple[Stage, ...]
    training: dict[str, Any]
    looking_back: int
    decay: float


_FIRST = {
    "repetition": 0.15,
    "recall": 0.15,
    "passkey": 0.08,
    "answering": 0.12,
    "copying": 0.08,
    "completion": 0.04,
    "classification": 0.03,
    TEXT: 0.35,
}
_SHORT = {
    "repetition": 0.08,
    "recall": 0.08,
    "passkey": 0.04,
    "answering": 0.08,
    "copying": 0.05,
    "completion": 0.03,
    "classification": 0.03,
    "tracking": 0.03,
    "counting": 0.02,
    TEXT: 0.56,
}
_ALL = {
    "repetition": 0.02,
    "recall": 0.07,
    "passkey": 0.05,
    "answering": 0.04,
    "copying": 0.03,
    "completion": 0.02,
    "classification": 0.02,
    "tracking": 0.02,
    "counting": 0.02,
    "longbench": 0.12,
    "choice": 0.05,
    TEXT: 0.54,
}

TINY = Recipe(
    {
        "vocab_size": 4096,
        "hidden_size": 256,
        "intermediate_size": 704,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "head_dim": 64,
        "max_position_embeddings": 1024,
        "initializer_range": 0.05,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1300.0},
    },
    stages=(
        Stage(128, 1_638_400, 4096, 3, _FIRST, reach=512),
        Stage(256, 10_240_000, 4096, 6, _SHORT, reach=1024),
        Stage(1024, 5_242_880, 8192, 16, _ALL),
    ),
    training={
        "learning_rate": 4e-4,
        "warmup_steps": 100,
        "weight_decay": 0.05,
        "max_grad_norm": 1.0,
        "save_steps": 100,
        "logging_steps": 10,
    },
    looking_back=3,
    decay=0.35,
)
