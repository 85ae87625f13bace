"""CLEX's neural ODE (Chen et al. 2023): the inverse frequencies as a continuous function of the
scaling factor t.

The state is z = ln θ̂, one number per pair, with z(1) = ln θ. With α(t) = 2t − 1,

    dz/dt = W_down · tanh(W_up · (z + ln n)) + ṅ/n,        ln n_i = ln θ_i − 2i/(d−2) · ln α
    (NTK-aware scaling),

for pairs i = 0 … d/2 − 1. The last term is the change of ln n. So y = z − ln n, what is learnt on
top of NTK-aware scaling, obeys

    dy/dt = W_down · tanh(W_up · y + 2·W_up · ln n),       y(1) = 0.

The classical Runge-Kutta method (RK4) solves it in steps of 0.01.
"""

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..geometry import RopeGeometry

STEP = 0.01


def solve(up: Tensor, down: Tensor, geometry: RopeGeometry, t: float) -> Tensor:
    """θ̂(t) in radians per position, float64 [pairs], on the CPU; differentiable in both matrices.

    All arithmetic is float64, which autocast leaves alone.

    Args:
        up: W_up, [hidden, pairs].
        down: W_down, [pairs, hidden].
        geometry: the pre-trained RoPE.
        t: the scaling factor, a number of steps above 1; at 1 the result is the pre-trained θ.

    Raises:
        InputError: the geometry has a single pair, for which NTK-aware scaling is not defined.
    """
    if geometry.pairs < 2:
        raise InputError(
            "CLEX needs at least two pairs; this model rotates one. Use another method."
        )
    up = up.cpu().double()
    down = down.cpu().double()
    steps = round((t - 1) / STEP)
    # at both ends and the middle of every step
    times = 1 + STEP / 2 * torch.arange(2 * steps + 1, dtype=torch.float64)
    exponents = 2 * torch.arange(geometry.pairs, dtype=torch.float64) / (geometry.head_dim - 2)
    ln_theta = torch.from_numpy(np.log(geometry.inv_freq))
    ln_n = ln_theta - torch.outer(torch.log(2 * times - 1), exponents)
    inputs = (2 * ln_n @ up.T).unbind()

    def slope(y: Tensor, given: Tensor) -> Tensor:
        return down @ torch.tanh(up @ y + given)

    # At t = 1 there is no step. Both matrices have a gradient all the same, of zeros: ZeRO-3 waits
    # for one from each process, and each draws a t of its own.
    y = torch.zeros_like(ln_theta) + 0 * (up.sum() + down.sum())
    for begin, middle, end in zip(inputs[:-1:2], inputs[1::2], inputs[2::2]):
        first = slope(y, begin)
        second = slope(y + STEP / 2 * first, middle)
        third = slope(y + STEP / 2 * second, middle)
        fourth = slope(y + STEP * third, end)
        y = y + STEP / 6 * (first + 2 * second + 2 * third + fourth)
    return torch.exp(ln_n[-1] + y)
