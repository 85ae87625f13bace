"""A small Llama trained here, its weights in the repository: every artifact, end to end."""

from core.geometry import RopeGeometry
from experiments.base_models.model import BaseModel, Training, papers_n_hat

GEOMETRY = RopeGeometry(head_dim=64, base=1300.0, context_length=1024)
MODEL = BaseModel(
    title="tiny (5.3 M)",
    source="repository:models/tiny",
    geometry=GEOMETRY,
    n_hat=papers_n_hat(GEOMETRY),
    training=Training(
        steps={2: 32, 4: 16},
        batch=2,
        device_batch=1,
        learning_rate=3e-5,
        checkpointing=False,
        save_every=8,
        corpus="books",
    ),
)
