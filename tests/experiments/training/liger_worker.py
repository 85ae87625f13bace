"""Losses and gradients by Liger's kernel and by ours, in a process of its own: Triton decides at its import whether it
interprets.

TRITON_INTERPRET=1 python -m tests.experiments.training.liger_worker FILE
"""

import os
import sys

import torch
from liger_kernel.transformers import functional

from experiments.training import loss
from tests.experiments.training.test_loss import inputs


def computed(interpreted):
    """[loss, gradients…] by Liger's kernel, or by ours where nothing interprets it."""
    os.environ["TRITON_INTERPRET"] = "1" if interpreted else "0"
    calls.clear()
    *variables, labels = inputs(bias=True, dtype=torch.float32)
    total = loss.summed_loss(*variables, labels)
    assert len(calls) == interpreted
    return [total.detach(), *torch.autograd.grad(0.5 * total, variables)]


calls = []
original = functional.liger_fused_linear_cross_entropy


def counted(*arguments, **options):
    calls.append(1)
    return original(*arguments, **options)


functional.liger_fused_linear_cross_entropy = counted
torch.save([computed(True), computed(False)], sys.argv[1])
