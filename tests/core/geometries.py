"""What the tests of methods share: geometries of every kind, and transformers' own rope
functions."""

from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core.rope import RopeGeometry

LLAMA2 = RopeGeometry(128, 10000.0, 4096)
SMOLLM2 = RopeGeometry(64, 100000.0, 8192)
geometries = st.builds(
    RopeGeometry,
    head_dim=st.sampled_from([32, 64, 80, 96, 128]),
    base=st.sampled_from([500.0, 10000.0, 1e5, 1e6]),
    context_length=st.sampled_from([512, 2048, 4096, 8192]),
)
factors = st.sampled_from([1.5, 2, 4, 8])


def official(geometry: RopeGeometry, rope_type: str, seq_len=None, **parameters):
    config = LlamaConfig(
        head_dim=geometry.head_dim,
        max_position_embeddings=geometry.context_length,
        rope_parameters={"rope_type": rope_type, "rope_theta": geometry.base, **parameters},
    )
    inv_freq, attention_factor = ROPE_INIT_FUNCTIONS[rope_type](config, seq_len=seq_len)
    return inv_freq.double().numpy(), attention_factor
