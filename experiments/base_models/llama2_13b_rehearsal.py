"""LLaMA2-13B's suite on a model of its widths with random weights: see experiments/beyond/rehearse.py."""

from experiments.base_models import llama2, llama2_13b

MODEL = llama2.rehearsed("llama2-13b", llama2_13b.MODEL)
