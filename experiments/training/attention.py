"""Causal attention in bfloat16 on a CPU, in half the time of PyTorch's: attention.cpp, compiled on
first use.

PyTorch's backward kernel for CPUs multiplies without the instructions for bfloat16 (AMX,
AVX512-BF16), and sums the gradients of keys and values in bfloat16. This one uses them and sums in
float32.
"""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path

import torch
from torch import Tensor, library
from torch.utils.checkpoint import create_selective_checkpoint_contexts
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from core.errors import in_one_line

NAME = "sdpa_bfloat16"
BLOCK = 128  # queries and keys of a block
# What every CPU with AMX or AVX512-BF16 has: machines that share a home share what is compiled.
VECTORS = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"]
FLAGS = ["-O3", *VECTORS, "-mprefer-vector-width=512", "-ffast-math", "-fopenmp"]
FLAGS.append(f"-DBLOCK={BLOCK}L")


def fits(model: PreTrainedModel, length: int) -> bool:
    """Whether the kernel can train this model on sequences of `length` tokens on this machine."""
    config = model.config.get_text_config(decoder=True)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    changes = ("sliding_window", "attention_dropout")
    whole = not any(getattr(config, name, None) for name in changes)
    instructions = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    compiler = shutil.which("c++") and shutil.which("ninja")
    return bool(instructions and compiler and whole and length % BLOCK == 0 and head_dim % 32 == 0)


def install(model: PreTrainedModel) -> None:
    """Let a model attend by this kernel, under autocast to bfloat16; where it does not compile, the
    model stays as it is and a note says so."""
    try:
        _compiled()
    except (RuntimeError, OSError) as error:
        print(f"note: training by PyTorch's attention ({in_one_line(error)}).", file=sys.stderr)
        return
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)


def keep_attention():
    """The `context_fn` of a checkpoint that keeps what the kernel returned and computes all else
    again."""
    return create_selective_checkpoint_contexts([torch.ops.dprope.attention.default])


@functools.cache
def _compiled() -> None:
    from torch.utils.cpp_extension import load

    source = Path(__file__).with_suffix(".cpp")
    load("dprope_attention", [str(source)], extra_cflags=FLAGS, is_python_module=False)
    library.register_autograd("dprope::attention", _backward, setup_context=_remember)


def _remember(ctx, inputs: tuple, output: tuple) -> None:
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx, gradient: Tensor, _) -> tuple:
    tensors = ctx.saved_tensors
    return *torch.ops.dprope.attention_backward(gradient.contiguous(), *tensors, ctx.scale), None


def _attend(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **others):
    """An attention function of transformers; tensors are [batch, heads, tokens, head dimension]."""
    assert attention_mask is None  # training's sequences are whole, and nothing is cached
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    heads = (tensor.bfloat16().flatten(0, 1).contiguous() for tensor in (query, key, value))
    output, _ = torch.ops.dprope.attention(*heads, scale)
    return output.view(query.shape).transpose(1, 2).contiguous(), None
