"""A model of LLaMA2-13B's widths with random weights: see experiments/beyond/rehearse.py."""

from experiments.base_models import llama2_13b
from experiments.beyond import rehearsal

MODEL = rehearsal.rehearsed("llama2-13b", llama2_13b.MODEL)
