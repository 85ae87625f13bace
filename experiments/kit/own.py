"""The suite for a user's own model: a scale without fine-tuning, sized by L and L'."""

from __future__ import annotations

from core.geometry import RopeGeometry
from experiments.kit.suite import Data, Step, Suite


def scale(title: str, model: str, geometry: RopeGeometry, factors: tuple[float, ...]) -> Scale:
    """The scale of a checkpoint; benchmarks without given files are left out."""
    context_length = geometry.context_length
    extended = sorted(round(context_length * factor) for factor in factors)
    lengths = (context_length, *extended)  # the same for every factor, so that one table can hold them all
    prompts = tuple(round(extended[-1] * share / 4) for share in range(1, 6))
    every = max(geometry.head_dim // 8 // 2 * 2, 2)
    suite = Suite(
        evaluations=(
            Step("loss_by_position", data=Data.BOOKS),
            Step(
                "perplexity",
                {"lengths": lengths, "stride": max(context_length // 2, 1), "tokens": extended[-1] + context_length},
                {"tokens": extended[-1] + context_length // 2},
                Data.BOOKS,
            ),
            Step("passkey", {"lengths": prompts, "depths": 3, "keys": 1}, {"depths": 1}),
            Step("ruler", {"lengths": lengths, "samples": 1}, quick=None),
            Step("longbench_e", {"limit": 20}, {"limit": 1}, Data.BENCHMARKS_GIVEN),
            Step("open_llm", {"limit": 300}, {"limit": 10}, Data.BENCHMARKS_GIVEN),
        ),
        alone=(
            Step("disturbance", {"factor": factors}),
            *(Step("selections", {"factor": factor, "every": every}, quick=None) for factor in factors),
        ),
        books=1,
    )
    return Scale(title, model, geometry, factors=factors, fine_tuned=(), suite=suite)
