"""Losses and gradients by Liger's kernel and by ours, in a process of its own: Triton decides at its import whether it
interprets.

TRITON_INTERPRET=1 python -m tests.experiments.training.liger_worker FILE
"""

import os
import sys

import torch
from liger_kernel.transformers import functional

from experiments.training import loss
from experiments.training.loss import IGNORED, HeadLoss
from tests.models import random_model


def inputs(dtype, bias):
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(*shape, generator=generator) for shape in ((23, 6), (11, 6), (11,))]
    labels = torch.randint(11, (23,), generator=generator)
    labels[[0, 7, 8, 22]] = IGNORED
    hidden, weight, offset = [tensor.to(dtype).requires_grad_() for tensor in made]
    return [hidden, weight, *([offset] if bias else [])], labels


def computed(interpreted, dtype, bias, scale=0.5):
    """[loss, gradients…] by Liger's kernel, or by ours where nothing interprets it."""
    os.environ["TRITON_INTERPRET"] = "1" if interpreted else "0"
    calls.clear()
    variables, labels = inputs(dtype, bias)
    hidden, weight, offset = [*variables, None][:3]
    total = loss.summed_loss(hidden, weight, offset, labels)
    assert len(calls) == interpreted
    return [total.detach(), *torch.autograd.grad(scale * total, variables)]


def of_a_model(interpreted):
    os.environ["TRITON_INTERPRET"] = "1" if interpreted else "0"
    calls.clear()
    model, tokens = random_model(tie_word_embeddings=True), torch.arange(3, 43).view(2, 20)
    total = HeadLoss(model)(model, {"input_ids": tokens}, tokens)
    total.backward()
    assert len(calls) == interpreted
    return [total.detach(), *(parameter.grad for parameter in model.parameters())]


calls = []
original = functional.liger_fused_linear_cross_entropy


def counted(*arguments, **options):
    calls.append(1)
    return original(*arguments, **options)


functional.liger_fused_linear_cross_entropy = counted
found = {}
for dtype in (torch.float32, torch.bfloat16):
    for bias in (False, True):
        found[str(dtype), bias] = [computed(interpreted, dtype, bias) for interpreted in (True, False)]
found["torch.float32", "model"] = [of_a_model(interpreted) for interpreted in (True, False)]
torch.save(found, sys.argv[1])
