"""Causal attention in bfloat16 on a CPU, in half the time of PyTorch's: attention.cpp, compiled on
first use.

PyTorch's backward kernel for CPUs multiplies without the instructions for bfloat16 (AMX,
AVX512-BF16), and sums the gradients of keys and values in bfloat16. This one uses them and sums in
float32.

It takes those calls of PyTorch's `scaled_dot_product_attention` that it knows: causal attention
over whole sequences. A mask, a window shorter than the sequence, a position bias and dropout are in
the arguments of a call, which PyTorch then computes. What that function does not know, such as soft
caps and sinks, never calls it.
"""

import functools
import os
import shutil
import sys
import sysconfig
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, library
from torch.nn import functional
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from core import files
from core.errors import in_one_line

NAME = "sdpa_bfloat16"
BLOCK = 128  # queries and keys of a block
# The vectors are those of every CPU with AMX or AVX512-BF16: machines that share a home share what
# is compiled.
FLAGS = (
    "-O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512 -ffast-math "
    f"-fopenmp -DBLOCK={BLOCK}L"
).split()
_plain = functional.scaled_dot_product_attention


class Kernel:
    """Attends in PyTorch's place.

    Attributes:
        used: whether any call was the kernel's.
    """

    def __init__(self) -> None:
        self.used = False

    def installed(self) -> AbstractContextManager:
        """Inside the context, every model's call of PyTorch's function comes here."""
        return mock.patch.object(functional, "scaled_dot_product_attention", self.attend)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **how,
    ) -> Tensor:
        """What PyTorch's function returns.

        Args:
            query, key, value: [batch, heads, tokens, head dimension].
            how: its `scale` and `enable_gqa`.
        """
        causal_alone = is_causal and attn_mask is None and not dropout_p
        scale = how.get("scale")
        positive = scale is None or scale > 0  # the kernel scales after it has found the largest
        if not (causal_alone and positive and _fit(query, key, value)):
            return _plain(query, key, value, attn_mask, dropout_p, is_causal, **how)
        self.used = True
        if scale is None:
            scale = query.shape[-1] ** -0.5
        heads = (tensor.bfloat16().flatten(0, 1).contiguous() for tensor in (query, key, value))
        output, _ = torch.ops.dprope.attention(*heads, scale)
        return output.view(query.shape)


def fits(length: int) -> bool:
    """Whether this machine can run the kernel on sequences of `length` tokens."""
    instructions = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    compiler = shutil.which("c++") and shutil.which("ninja", path=_search_path())
    return bool(instructions and compiler and length % BLOCK == 0)


def _search_path() -> str:
    """PATH, and after it the folder of what pip installed, ninja among it: that of a Python which
    is called by its path need not be on PATH."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), sysconfig.get_path("scripts")])


def kernel(length: int) -> Kernel | None:
    """The kernel, where it fits; None where it does not, or, with a note, does not compile."""
    if not fits(length):
        return None
    try:
        _compiled()
    except (RuntimeError, OSError) as error:
        print(f"note: training by PyTorch's attention ({in_one_line(error)}).", file=sys.stderr)
        return None
    return Kernel()


def keep_attention():
    """The `context_fn` of a checkpoint that keeps what the kernel returned and computes all else
    again."""
    return create_selective_checkpoint_contexts([torch.ops.dprope.attention.default])


def _fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether the kernel can compute with tensors of these shapes and dtypes."""
    if query.ndim != 4 or key.shape != value.shape:
        return False
    batch, heads, tokens, head_dim = query.shape
    groups = key.shape[1]
    whole = tokens % BLOCK == 0 and head_dim % 32 == 0 and heads % groups == 0
    dtypes = {tensor.dtype for tensor in (query, key, value)}
    if torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16:
        dtypes -= {torch.float32}  # which PyTorch's function would narrow, too
    return whole and key.shape == (batch, groups, tokens, head_dim) and dtypes <= {torch.bfloat16}


@functools.cache
def _compiled() -> None:
    from torch.utils.cpp_extension import _get_build_directory, load

    source = Path(__file__).with_suffix(".cpp")
    folder = Path(_get_build_directory("dprope_attention", False))
    with files.lock(folder, wait=True):
        # torch's own lock is a file. A kill leaves it, and torch would wait for it without end.
        (folder / "lock").unlink(missing_ok=True)
        with mock.patch.dict(os.environ, PATH=_search_path()):
            load("dprope_attention", [str(source)], extra_cflags=FLAGS, is_python_module=False)
    library.register_autograd("dprope::attention", _backward, setup_context=_remember)


def _remember(ctx, inputs: tuple, output: tuple) -> None:
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


def _backward(ctx, gradient: Tensor, _) -> tuple:
    tensors = ctx.saved_tensors
    return *torch.ops.dprope.attention_backward(gradient.contiguous(), *tensors, ctx.scale), None
