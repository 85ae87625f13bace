"""LLaMA2-13B, the paper's own; its ablations are of this one."""

from experiments.base_models import llama2

MODEL = llama2.model(
    "LLaMA2-13B", "meta-llama/Llama-2-13b-hf", width=5120, intermediate=13824, layers=40, heads=40
)
