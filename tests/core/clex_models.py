"""Small models with a CLEX embedding, and what their tests share."""

import torch

from core import clex
from core.clex.rotary import ClexRotaryEmbedding
from core.huggingface.embedding import rope_geometry
from core.rope import RopeGeometry
from tests.models import random_model

L = 16
SHORT = {"max_position_embeddings": L}
GEOMETRY = RopeGeometry(16, 500.0, L)


def matrices(geometry):
    """W_up and W_down, float64."""
    generator = torch.Generator().manual_seed(0)
    d = geometry.head_dim
    up = torch.randn(d, geometry.pairs, generator=generator).double()
    down = torch.randn(geometry.pairs, d, generator=generator).double()
    return 0.3 * up, 0.3 * down


def clex_model(architecture="LlamaConfig", factor=4, **overrides):
    """A random model whose ODE is far from NTK-aware scaling, so that every t rotates
    differently."""
    model = random_model(architecture, **{**SHORT, **overrides})
    clex.install(model, rope_geometry(model), factor)
    down = rotary(model).down
    with torch.no_grad():
        down.copy_(0.05 * torch.randn(down.shape, generator=torch.Generator().manual_seed(1)))
    return model


def rotary(model):
    return next(module for module in model.modules() if isinstance(module, ClexRotaryEmbedding))


@torch.inference_mode()
def full_logits(model, ids):
    return model(ids, use_cache=False).logits
