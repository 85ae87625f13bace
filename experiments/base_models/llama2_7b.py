"""LLaMA2-7B, the paper's own."""

from experiments.base_models import llama2

MODEL = llama2.model(
    "LLaMA2-7B", "meta-llama/Llama-2-7b-hf", width=4096, intermediate=11008, layers=32, heads=32
)
