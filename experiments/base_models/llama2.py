"""LLaMA2 in the paper: its geometry, n̂ (section 4.1), and sizes without grouped queries."""

from core.geometry import RopeGeometry
from experiments.base_models.model import BaseModel, papers_n_hat

GEOMETRY = RopeGeometry(head_dim=128, base=10000.0, context_length=4096)
N_HAT = papers_n_hat(GEOMETRY)


def model(
    title: str, name: str, width: int, intermediate: int, layers: int, heads: int
) -> BaseModel:
    """The paper's settings for a LLaMA2 of these sizes."""
    return BaseModel(
        title,
        name,
        GEOMETRY,
        n_hat=N_HAT,
        architecture={
            "hidden_size": width,
            "intermediate_size": intermediate,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "vocab_size": 32000,
            "max_position_embeddings": GEOMETRY.context_length,
        },
        gpu_dtype="bfloat16",
        suite="llama2",
    )
