"""CLEX's rotary embedding: its scale is random in training and follows the input's length in
evaluation."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InputError
from ..geometry import RopeGeometry, RopeScaling
from ..huggingface.rotation import Float32
from . import ode

MAX_FACTOR = 16  # the largest t, in training and in evaluation
Draw = tuple[int, Tensor]  # t, and a sample's positions


class ClexRotaryEmbedding(Float32):
    """Takes the place of a Llama-style rotary embedding: (x, position_ids) → cos, sin, each [rows,
    length, d].

    Attributes:
        stock: the embedding it replaces, at one fixed factor; a load without this repository
            computes with it.
        up, down: W_up [d, d/2] and W_down [d/2, d]; they stay float32 when the model is cast,
            unless :func:`core.clex.narrow` casts them. W_down starts at zero, so the scale starts
            as NTK-aware scaling.
        pinned: the t of every forward pass in evaluation; None to take it from the length.
        drawn: from the length of a training pass to a draw for every row of it. None for one draw
            per pass, from torch's global generator.
    """

    stock: nn.Module

    def __init__(self, geometry: RopeGeometry) -> None:
        super().__init__()
        self.geometry = geometry
        self.up = nn.Parameter(torch.empty(geometry.head_dim, geometry.pairs))
        self.down = nn.Parameter(torch.zeros(geometry.pairs, geometry.head_dim))
        # The authors store W_up transposed, so that the Kaiming bound is 1/√d.
        nn.init.kaiming_uniform_(self.up, a=math.sqrt(5), mode="fan_out")
        self.pinned: int | None = None
        self.drawn: Callable[[int], list[Draw]] | None = None
        self._matrices = torch.empty(0)  # of which `_solved` holds θ̂ by t, on the CPU
        self._solved: dict[int, Tensor] = {}

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        if self.training:
            # This is the sequence's length; with padding or packed documents, positions are
            # smaller.
            length = max(position_ids.shape[-1], int(position_ids.max()) + 1)
            draws = self.drawn(length) if self.drawn else [self.draw(length)]
            solved = {t: ode.solve(self.up, self.down, self.geometry, t).float() for t, _ in draws}
            inv_freq = torch.stack([solved[t] for t, _ in draws])[:, None]  # [rows or 1, 1, pairs]
            drawn = torch.stack([positions for _, positions in draws]).to(x.device)
            positions = torch.take_along_dim(drawn, position_ids, dim=1)
        else:
            inv_freq = self.inv_freq(self.factor(position_ids))
            positions = position_ids
        cos, sin = cos_sin(positions, inv_freq.to(x.device))
        return cos.to(x.dtype), sin.to(x.dtype)

    def draw(self, length: int, generator: torch.Generator | None = None) -> Draw:
        """t, uniform in 1 … MAX_FACTOR, and positions, float32 [length].

        The first position is 0; a random subset of those up to t·length − 1 follows in order. For a
        sequence of k·L tokens they are divided by k, so that they stay below t·L. The last is
        ⌊t·length / k⌋ − 1, as in the authors' code; from k = 3 on it may be below the one before.

        Args:
            generator: on the CPU; None for torch's global one.
        """
        t = int(torch.randint(1, MAX_FACTOR + 1, (), generator=generator))
        times = max(1, length // self.geometry.context_length)
        drawn = torch.randperm(max(t * length - 2, 0), generator=generator)[: max(length - 2, 0)]
        inner = (1 + drawn.sort().values).float() / times
        last = torch.tensor([float(t * length // times - 1)])
        return t, torch.cat([torch.zeros(1), inner, last])[:length]

    def factor_at(self, length: int) -> int:
        """t = ⌈length / L⌉, at most MAX_FACTOR."""
        return min(max(1, math.ceil(length / self.geometry.context_length)), MAX_FACTOR)

    def for_length(self, length: int) -> dict[str, int]:
        """See :mod:`core.huggingface.rotation`."""
        return {"pinned": self.factor_at(length)}

    def factor(self, position_ids: Tensor) -> int:
        """The t of a forward pass in evaluation; InputError if keys in a cache were computed at
        another."""
        first = int(position_ids.min())
        t = self.pinned or self.factor_at(int(position_ids.max()) + 1)
        if first and not self.pinned and self.factor_at(first) != t:
            raise InputError(
                "a cached text outgrows CLEX's scale; set one for all of it by "
                "core.huggingface.rotation.at_length."
            )
        return t

    @torch.no_grad()
    def inv_freq(self, t: int) -> Tensor:
        """θ̂(t), float32 [pairs]; solved once per t as long as the matrices do not change."""
        # Compare values: optimizers and DeepSpeed write to parameters in ways that leave no trace.
        matrices = torch.cat([self.up, self.down.T]).cpu()
        if not torch.equal(matrices, self._matrices):
            self._matrices = matrices
            self._solved = {}
        if t not in self._solved:
            self._solved[t] = ode.solve(self.up, self.down, self.geometry, t).float()
        return self._solved[t]

    def scaling(self, factor: float) -> RopeScaling:
        """θ̂ at t = ⌈factor⌉, for a context of fixed length; InputError if that exceeds
        MAX_FACTOR."""
        t = math.ceil(factor - 1e-9)
        if t > MAX_FACTOR:
            raise InputError(
                f"CLEX reaches a factor of at most {MAX_FACTOR} here; {factor:g} was asked for."
            )
        with torch.no_grad():
            inv_freq = ode.solve(self.up, self.down, self.geometry, t).numpy()
        return RopeScaling(inv_freq, 1.0, np.isclose(inv_freq, self.geometry.inv_freq / factor))


def cos_sin(positions: Tensor, inv_freq: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin, float32 [rows, length, d], with pair i in columns i and i + d/2.

    Args:
        positions: [rows, length].
        inv_freq: [pairs], or [rows, 1, pairs].
    """
    angles = positions[..., None].float() * inv_freq
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()
