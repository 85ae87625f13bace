"""experiments.finetune, one of several processes; what it held in memory at the end goes to a file.

python -m tests.experiments.lab.training.zero3_worker FILE ARGUMENTS…
"""

import sys

import torch

from experiments import finetune
from experiments.lab import cli
from experiments.lab.training.run import Run

file = sys.argv.pop(1)
finish = Run.finish


def look(self, made, *rest):
    model = made.model
    parameter = model.model.layers[0].mlp.up_proj.weight
    x = torch.zeros(1, 1, 16)  # float32, so that the tables are not rounded
    cos, sin = model.model.rotary_emb(x, torch.tensor([[8191]]))
    if made.is_world_process_zero():
        torch.save(
            {
                "stage": made.model_wrapped.zero_optimization_stage(),
                "parameter_dtype": parameter.dtype,
                "elements_here": parameter.numel(),
                "inv_freq": model.model.rotary_emb.inv_freq,
                "cos": cos,
                "sin": sin,
            },
            file,
        )
    finish(self, made, *rest)


Run.finish = look
cli.run(finetune.main)
