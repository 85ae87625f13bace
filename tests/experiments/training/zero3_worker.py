"""experiments.finetune, one of several processes; what it held in memory at the end goes to a file.

python -m tests.experiments.training.zero3_worker FILE KILLED_AT ARGUMENTS…

A KILLED_AT other than 0 is the step in the middle of which every process is killed.
"""

import functools
import os
import signal
import sys

import torch
from accelerate import PartialState
from deepspeed.ops import __compatible_ops__
from transformers import TrainingArguments

from core import clex
from experiments import finetune
from experiments.kit import command_line
from experiments.training import trainer
from experiments.training.output import Output
from experiments.training.trainer import Trainer

file, killed_at = sys.argv.pop(1), int(sys.argv.pop(1))
finish, step = Output.finish, Trainer.training_step


def join_on_cpu():
    """Unless it is told the backend, accelerate joins processes for DeepSpeed on accelerators only."""
    __compatible_ops__["deepspeed_shm_comm"] = False  # it would compile for minutes
    os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
    PartialState(backend="gloo")
    configured = {"use_configured_state": True}
    trainer.TrainingArguments = functools.partial(TrainingArguments, accelerator_config=configured)


def look(self, trainer, *rest):
    model = trainer.model
    parameter, rotary = model.model.layers[0].mlp.up_proj.weight, model.model.rotary_emb
    seen = {
        "stage": trainer.model_wrapped.zero_optimization_stage(),
        "gradients": trainer.model_wrapped.optimizer.grad_partitions_flat_buffer.dtype,
        "parameter_dtype": parameter.dtype,
        "elements_here": parameter.numel(),
    }
    if clex.is_installed(model):
        seen["matrices"] = {rotary.up.dtype, rotary.down.dtype}
    else:
        x = torch.zeros(1, 1, 16)  # float32, so that the tables are not rounded
        seen["inv_freq"], (seen["cos"], seen["sin"]) = rotary.inv_freq, rotary(x, torch.tensor([[8191]]))
    if trainer.is_world_process_zero():
        torch.save(seen, file)
    finish(self, trainer, *rest)


def killed(self, *rest):
    if self.state.global_step == killed_at - 1 and self._micro_batch:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *rest)


Output.finish = look
if killed_at:
    Trainer.training_step = killed
join_on_cpu()
command_line.run(finetune.main)
