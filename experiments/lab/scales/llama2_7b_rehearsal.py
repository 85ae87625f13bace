"""LLaMA2-7B's suite on a model of its widths with random weights: see experiments/rehearse.py."""

from experiments.lab import llama2
from experiments.lab.scales import llama2_7b

SCALE = llama2.rehearsed("llama2-7b", llama2_7b.SCALE)
