"""LLaMA2 as the paper has it: its geometry, n̂ (section 4.1), sizes without grouped queries, and what it measured."""

from __future__ import annotations

from core.geometry import RopeGeometry
from experiments.lab.scale import Scale
from experiments.lab.suite import Ablation, Data, Step, Suite

GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
N_HAT = {2: 80, 4: 64}
_LENGTHS = (4096, 8192, 16384)
_HALF = {"dtype": "bfloat16"}

# Quickly: what tells whether each of them runs.
EVALUATIONS = (
    Step("longbench_e", _HALF, {"limit": 1}, Data.BENCHMARKS),
    Step("open_llm", _HALF, {"limit": 10}, Data.BENCHMARKS),
    Step("ruler", {"lengths": _LENGTHS, "samples": 500, **_HALF}, {"lengths": _LENGTHS[:2], "samples": 1}),
    Step(
        "perplexity",  # the paper's texts are PG19's, which --books names
        {"lengths": _LENGTHS, "stride": 256, **_HALF},
        {"lengths": _LENGTHS[:2], "tokens": 16384},
        Data.BOOKS,
    ),
    Step(
        "passkey",
        {"lengths": (2048, 4096, 8192, 12288, 16384, 20480), "keys": 10, **_HALF},
        {"lengths": _LENGTHS[:2], "depths": 3, "keys": 1},
    ),
)
# Tables 4 to 7: fine-tuned at s = 2; b is varied at the n̂ of the comparison.
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
) -> Scale:
    """The paper's settings for a LLaMA2 of these sizes."""
    return Scale(
        title,
        model,
        GEOMETRY,
        n_hat=N_HAT,
        trains_n_hat=True,
        suite=Suite(
            evaluations=EVALUATIONS,
            alone=(Step("disturbance"), Step("angle_distribution")),
            seeds=1,
            timing=Step("time_cost", _HALF, {"repeats": 1}),
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
    )
