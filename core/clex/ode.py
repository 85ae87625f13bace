"""CLEX's neural ODE (Chen et al. 2023): the inverse frequencies as a continuous function of the
scaling factor t.

The state is z = ln θ̂, one number per pair, with z(1) = ln θ. With α(t) = 2t − 1,

    dz/dt = W_down · tanh(W_up · (z + ln n)) + ṅ/n,        ln n_i = ln θ_i − 2i/(d−2) · ln α
    (NTK-aware scaling),

for pairs i = 0 … d/2 − 1. The classical Runge-Kutta method (RK4) solves it in steps of 0.01. Since
ṅ/n integrates to ln n in closed form, z = ln n + W_down·S, where S has the width of the hidden
layer and obeys

    dS/dt = tanh(M·S + p + q·ln α),     S(1) = 0,     M = W_up·W_down,  p + q·ln α = 2·W_up·ln n.

RK4 commutes with linear maps, so solving for S solves for z, with one small product per stage
instead of two. The gradient goes back through RK4's stages by hand, which avoids an autograd graph
of thousands of nodes.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ..errors import InputError
from ..geometry import RopeGeometry

STEP = 0.01
_WEIGHTS = np.array([1, 2, 2, 1]) / 6


def solve(up: torch.Tensor, down: torch.Tensor, geometry: RopeGeometry, t: float) -> torch.Tensor:
    """θ̂(t) in radians per position, float64 [pairs], on the CPU; differentiable in both matrices.

    All arithmetic is float64, which autocast leaves alone.

    Args:
        up: W_up, [hidden, pairs].
        down: W_down, [pairs, hidden].
        geometry: the pre-trained RoPE.
        t: the scaling factor, at least 1; at 1 the result is the pre-trained θ.

    Raises:
        InputError: the geometry has a single pair, for which NTK-aware scaling is not defined.
    """
    if geometry.pairs < 2:
        raise InputError(
            "CLEX needs at least two pairs; this model rotates one. Use another method."
        )
    up = up.cpu().double()
    down = down.cpu().double()
    start = torch.from_numpy(np.log(geometry.inv_freq))
    slope = -2 * torch.arange(geometry.pairs, dtype=torch.float64) / (geometry.head_dim - 2)
    hidden = _RungeKutta.apply(up @ down, 2 * up @ start, 2 * up @ slope, float(t))
    return torch.exp(start + slope * math.log(2 * t - 1) + down @ hidden)


class _RungeKutta(torch.autograd.Function):
    """(M, p, q, t) → S(t), by RK4 on v = M·S; the four stages of every step are kept for the
    gradient.

    It uses NumPy because a stage is a few microseconds of arithmetic, less than torch's dispatch
    costs.
    """

    @staticmethod
    def forward(
        ctx, matrix: torch.Tensor, p: torch.Tensor, q: torch.Tensor, t: float
    ) -> torch.Tensor:
        steps = math.ceil((t - 1) / STEP - 1e-9)
        step = (t - 1) / max(steps, 1)
        # at both ends and the middle of every step
        log_alpha = np.log(1 + step * np.arange(2 * steps + 1))
        drive = p.detach().numpy() + log_alpha[:, None] * q.detach().numpy()
        m = matrix.detach().numpy()
        half = m * (step / 2)
        whole = m * step

        stages = np.empty((steps, 4, len(m)))
        v = np.zeros(len(m))
        for i, k in enumerate(stages):
            begin, middle, end = drive[2 * i : 2 * i + 3]
            np.tanh(v + begin, out=k[0])
            middle = v + middle
            np.tanh(middle + half @ k[0], out=k[1])
            np.tanh(middle + half @ k[1], out=k[2])
            np.tanh(v + end + whole @ k[2], out=k[3])
            v = v + whole @ (_WEIGHTS @ k)
        ctx.saved = m, step, log_alpha, stages
        return torch.from_numpy(step * np.einsum("k,nkh->h", _WEIGHTS, stages))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: torch.Tensor):
        m, step, log_alpha, stages = ctx.saved
        steps = len(stages)
        half = m.T * (step / 2)
        whole = m.T * step
        # S is the sum of the steps' increments, so each receives this gradient
        direct = step * gradient.numpy()
        slopes = 1 - stages**2

        inner = np.empty_like(stages)  # the gradient with respect to the argument of each tanh
        of_v = np.zeros((steps + 1, len(m)))  # the gradient with respect to v after each step
        for i in reversed(range(steps)):
            g = inner[i]
            d = slopes[i]
            increment = direct + whole @ of_v[i + 1]
            outer = increment / 6
            np.multiply(d[3], outer, out=g[3])
            np.multiply(d[2], 2 * outer + whole @ g[3], out=g[2])
            np.multiply(d[1], 2 * outer + half @ g[2], out=g[1])
            np.multiply(d[0], outer + half @ g[1], out=g[0])
            of_v[i] = of_v[i + 1] + g[0] + g[1] + g[2] + g[3]

        k = stages.transpose(1, 0, 2)
        g = inner.transpose(1, 0, 2)
        of_m = of_v[1:].T @ (step * np.einsum("k,knh->nh", _WEIGHTS, k))
        of_m += g[1].T @ k[0] * (step / 2) + g[2].T @ k[1] * (step / 2) + g[3].T @ k[2] * step
        of_q = log_alpha[:-1:2] @ g[0] + log_alpha[1::2] @ (g[1] + g[2]) + log_alpha[2::2] @ g[3]
        return *(torch.from_numpy(x) for x in (of_m, inner.sum((0, 1)), of_q)), None
