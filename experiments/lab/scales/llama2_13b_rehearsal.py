"""LLaMA2-13B's suite on a model of its widths with random weights: see experiments/rehearse.py."""

from experiments.lab import llama2
from experiments.lab.scales import llama2_13b

SCALE = llama2.rehearsed("llama2-13b", llama2_13b.SCALE)
