"""LLaMA2-7B's suite on a model of its widths with random weights: see experiments/beyond/rehearse.py."""

from experiments.base_models import llama2, llama2_7b

MODEL = llama2.rehearsed("llama2-7b", llama2_7b.MODEL)
