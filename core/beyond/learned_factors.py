"""Learn the inverse frequencies and the attention factor of a model by gradients, with its weights
frozen.

Stock rotary embeddings compute under ``no_grad`` from buffers. :func:`learning` replaces them by
embeddings that call the same code on inverse frequencies and an attention factor that gradients
reach. So every architecture computes what it does with a fixed embedding: the same operators in the
same precision, with angles in float32.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from .. import clex
from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..huggingface.configuration import layer_type, text_config
from ..huggingface.embedding import cosines
from ..huggingface.rotation import buffer_name, factor_name, rotary_module

# How much a move of 1 changes a logarithm: for a pair's factor at most _WIDEST, for the attention
# factor _ATTENTION.
_WIDEST = 0.3
_ATTENTION = 0.03


class Factors:
    """λ_i = θ_i/θ̂_i and the attention factor, learned as moves of their logarithms so that none
    becomes negative.

    A move of 1 turns a pair by one radian at a distance of L, but changes no log λ_i by more than
    0.3. These units are needed because the loss as a function of log λ_i has valleys as narrow as
    1/(θ̂_i·Δ), where Δ is a distance that attention covers. A step that suits a slow pair would
    throw a fast pair from valley to valley. Measured in moves, all pairs take steps of the same
    size.

    The values stay on the CPU, where a stock embedding is computed from its configuration too. So
    the learned inverse frequencies equal, to the last bit, those of the method `factors` given
    :attr:`values`.

    Args:
        geometry: the pre-trained RoPE.
        scaling: the starting point.

    Attributes:
        moves: float32 [d/2 + 1] with gradients, zero at first: one for each log λ_i, and last one
            for the logarithm of the attention factor.
    """

    def __init__(self, geometry: RopeGeometry, scaling: RopeScaling) -> None:
        start = np.append(geometry.inv_freq / scaling.inv_freq, scaling.attention_factor)
        units = np.append(
            np.minimum(1 / (scaling.inv_freq * geometry.context_length), _WIDEST), _ATTENTION
        )
        self._start, self._units = (
            torch.tensor(x, dtype=torch.float32) for x in (np.log(start), units)
        )
        exponents = torch.arange(0, geometry.head_dim, 2).float() / geometry.head_dim
        # 1 where RoPE is plain
        scaled = torch.tensor(geometry.of_base / geometry.inv_freq, dtype=torch.float32)
        # 1/θ_i, rounded as in transformers' longrope
        self._inverse = scaled * geometry.base**exponents
        self._before = geometry.attention_factor
        self.moves = torch.zeros(geometry.pairs + 1, requires_grad=True)

    @property
    def logarithms(self) -> torch.Tensor:
        """log λ_i, and last the logarithm of the attention factor, float32 [d/2 + 1]."""
        return self._start + self._units * self.moves

    @property
    def inv_freq(self) -> torch.Tensor:
        """θ̂_i in radians per position, float32 [d/2]."""
        return 1.0 / (self.logarithms[:-1].exp() * self._inverse)

    @property
    def attention_factor(self) -> torch.Tensor:
        """What multiplies cos and sin, float32, a scalar."""
        return self.logarithms[-1].exp()

    @property
    def values(self) -> tuple[list[float], float]:
        """The factors λ_i and the method's attention factor, as `factors` takes them; they survive
        JSON exactly."""
        *factors, attention_factor = self.logarithms.detach().exp().tolist()
        return factors, attention_factor / self._before


class LearnedRotaryEmbedding(nn.Module):
    """Replaces a stock rotary embedding; it has the same arguments and results.

    Args:
        stock: the embedding it replaces.
        factors: shared by all embeddings of a model.
        layers: the layer type to learn, where RoPE differs by layer type; other types stay as they
            are.
    """

    def __init__(self, stock: nn.Module, factors: Factors, layers: str | None = None) -> None:
        super().__init__()
        self.stock = stock
        self.factors = factors
        self._layers = layers
        # without its no_grad and its choice of frequencies
        self._compute = inspect.unwrap(type(stock).forward)

    def forward(self, x: torch.Tensor, *arguments, **keywords):
        """The stock embedding's result, computed from the learned values."""
        learned = copy.copy(self.stock)
        # found before the buffer
        vars(learned)[buffer_name(self._layers)] = self.factors.inv_freq.to(x.device)
        vars(learned)[factor_name(self._layers)] = self.factors.attention_factor.to(x.device)
        return self._compute(learned, x, *arguments, **keywords)


@contextmanager
def learning(model: PreTrainedModel, factors: Factors) -> Iterator[None]:
    """Inside the context, the model computes with `factors`, and gradients reach nothing else.

    Afterwards the embedding is stock again; the weights stay frozen.

    Raises:
        InputError: the model has no rotary embedding, or one that does not compute from its inverse
            frequencies.
    """
    clex.remove(model)
    model.requires_grad_(False)
    parent, name, stock = rotary_module(model)
    layers = layer_type(text_config(model.config))
    learned = LearnedRotaryEmbedding(stock, factors, layers)
    _check(learned, layers)
    setattr(parent, name, learned)
    try:
        yield
    finally:
        setattr(parent, name, stock)


def _check(rotary: LearnedRotaryEmbedding, layers: str | None) -> None:
    """Raise InputError unless gradients reach every factor."""
    with torch.enable_grad():
        total = cosines(rotary, layers, [1, 2, 3]).abs().sum()
        gradient = (
            torch.autograd.grad(total, rotary.factors.moves)[0]
            if total.requires_grad
            else torch.zeros(1)
        )
    # for good, as CoPE does
    stopped = torch.nn.functional.pad(rotary.factors.inv_freq < 1e-20, (0, 1))
    if not (gradient.bool() | stopped).all():
        raise InputError(
            f"{type(rotary.stock).__name__} does not compute from its inverse frequencies alone; "
            f"learn the factors of "
            "another architecture, such as a Llama."
        )
