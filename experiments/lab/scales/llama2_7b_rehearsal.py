"""A model of LLaMA2-7B's widths with random weights: see experiments/rehearse.py."""

from experiments.lab import rehearsal
from experiments.lab.scales import llama2_7b

SCALE = rehearsal.scale("llama2-7b", llama2_7b.SCALE)
