"""A model of LLaMA2-7B's widths with random weights: see experiments/beyond/rehearse.py."""

from experiments.base_models import llama2_7b
from experiments.beyond import rehearsal

MODEL = rehearsal.rehearsed("llama2-7b", llama2_7b.MODEL)
