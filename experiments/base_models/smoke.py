"""Random weights, seconds: for trying the machinery."""

from core.geometry import RopeGeometry
from experiments.base_models.model import Model, Training

MODEL = Model(
    title="smoke test",
    source="random",
    geometry=RopeGeometry(head_dim=16, base=500.0, context_length=64),
    training=Training(
        steps={2: 4, 4: 4},
        batch=4,
        device_batch=2,
        learning_rate=1e-3,
        checkpointing=False,
        save_every=2,
        corpus="books",
    ),
    architecture={
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": 260,
        "max_position_embeddings": 64,
        "rope_theta": 500.0,
    },
)
