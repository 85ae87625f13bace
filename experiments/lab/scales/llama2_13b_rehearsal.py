"""A model of LLaMA2-13B's widths with random weights: see experiments/rehearse.py."""

from experiments.lab import rehearsal
from experiments.lab.scales import llama2_13b

SCALE = rehearsal.scale("llama2-13b", llama2_13b.SCALE)
