"""LLaMA2 in the paper: its geometry, n̂ (section 4.1), sizes without grouped queries, and what the paper measured."""

from __future__ import annotations

from dataclasses import replace

from core import rope
from core.geometry import RopeGeometry
from experiments.base_models.model import Model
from experiments.beyond import rehearsal
from experiments.kit.suite import Ablation, Data, Step, Suite

GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
N_HAT = {2: 80, 4: 64}
_LENGTHS = (4096, 8192, 16384)

# Under --quick, just enough to show that each one runs.
EVALUATIONS = (
    Step("longbench_e", quick={"limit": 1}, data=Data.BENCHMARKS),
    Step("open_llm", quick={"limit": 10}, data=Data.BENCHMARKS),
    Step("ruler", {"lengths": _LENGTHS, "samples": 500}, {"lengths": _LENGTHS[:2], "samples": 1}),
    Step(
        "perplexity",  # the paper's texts are PG19's; give them by --books
        {"lengths": _LENGTHS, "stride": 256},
        {"lengths": _LENGTHS[:2], "tokens": 16384},
        Data.BOOKS,
    ),
    Step(
        "passkey",
        {"lengths": (2048, 4096, 8192, 12288, 16384, 20480), "keys": 10},
        {"lengths": _LENGTHS[:2], "depths": 3, "keys": 1},
    ),
)
# The paper's tables 4 to 7, fine-tuned at s = 2; b is varied at the n̂ of the main comparison.
ABLATIONS = (
    Ablation("n_hat", (56, 64, 72, 80, 88, 96)),
    Ablation("intervals", (90, 180, 360, 720), fixed={"n_hat": N_HAT[2]}),
)


def scale(
    title: str,
    model: str,
    width: int,
    intermediate: int,
    layers: int,
    heads: int,
    ablations: tuple[Ablation, ...] = (),
) -> Model:
    """The paper's settings for a LLaMA2 of these sizes."""
    return Model(
        title,
        model,
        GEOMETRY,
        n_hat=N_HAT,
        # First the paper's own comparison; then, of the rules published since, the one to beat.
        compared=(
            *(rope.ORIGINAL, rope.UNIT, rope.NTK, rope.RIVAL, rope.TO_BEAT),
            *(rope.OURS, rope.OURS_BY_NOISE, rope.COVERED),
        ),
        trains_n_hat=True,
        suite=Suite(
            evaluations=EVALUATIONS,
            alone=(Step("disturbance"), Step("angle_distribution")),
            seeds=1,
            timing=Step("time_cost", {"length": 2 * GEOMETRY.context_length, "checkpointing": True}, {"repeats": 1}),
            ablations=ablations,
        ),
        architecture={
            "hidden_size": width,
            "intermediate_size": intermediate,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "vocab_size": 32000,
            "max_position_embeddings": GEOMETRY.context_length,
        },
        gpu_dtype="bfloat16",
    )


# A rehearsal on a GPU has the paper's lengths and layouts with very few samples. On a CPU, where L tokens of one layer
# take half a minute, prompts have a few hundred tokens, with one prompt per model that exceeds L.
_BEYOND = GEOMETRY.context_length + 64
_LESS = {
    "miniature": ({"samples": 1, "documents": 5}, {}),
    "finetune": ({}, {"length": 64, "batch": 2}),
    "longbench_e": (
        {},
        {"limit": 1, "tasks": ("qasper", "trec"), "window": 640, "margin": 128, "new_tokens": 4},
    ),
    "open_llm": ({"limit": 5}, {"limit": 1, "shots": 1}),
    "ruler": ({"samples": 1}, {"samples": 1, "lengths": (1024,), "tasks": ("vt",)}),
    "perplexity": (
        {"tokens": 20480, "stride": 8192 - 256, "lengths": _LENGTHS[1:]},
        {"tokens": 384, "lengths": (256,), "stride": 128},
    ),
    "passkey": ({"depths": 1, "keys": 1}, {"depths": 1, "keys": 1, "lengths": (256, _BEYOND)}),
    "time_cost": ({"repeats": 1}, {"repeats": 1, "length": 64}),
}


def rehearsed(name: str, preset: Model) -> Model:
    """The rehearsal of one of these scales; its batches have 16 sequences, so that up to 16 GPUs can divide them."""
    training = replace(preset.training, steps={2: 2, 4: 2}, batch=16, save_every=2, data="books")
    return rehearsal.scale(name, preset, _LESS, training)
