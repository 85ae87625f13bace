"""CLEX's ODE against the recurrence written out, autograd through it, and NTK-aware scaling."""

import numpy as np
import pytest
import torch

from core import clex
from core.clex import ode
from tests.core.clex.made import GEOMETRY, matrices


def scale_free(geometry, t):
    """ln θ̂ under NTK-aware scaling by α = 2t − 1, which raises the base to base·α^(d/(d−2))."""
    d = geometry.head_dim
    return -np.arange(0, d, 2) / d * np.log(geometry.base * (2 * t - 1) ** (d / (d - 2)))


@pytest.mark.parametrize("t", [1.5, 16])
def test_with_nothing_learnt_it_is_ntk_aware_scaling_by_alpha(t):
    up, down = matrices(GEOMETRY)
    solved = ode.solve(up, 0 * down, GEOMETRY, t).log().numpy()
    assert solved == pytest.approx(scale_free(GEOMETRY, t), abs=1e-12)
    fresh = clex.ClexRotaryEmbedding(torch.nn.Identity(), GEOMETRY)
    assert fresh.scaling(t).inv_freq == pytest.approx(np.exp(scale_free(GEOMETRY, np.ceil(t))))


def test_the_solution_and_its_gradients_are_those_of_the_plain_recurrence():
    up, down = matrices(GEOMETRY)
    up.requires_grad_()
    down.requires_grad_()
    exponent = torch.arange(0, 16, 2).double()

    def change(t, z):
        alpha = 2 * t - 1
        ntk = -exponent / 16 * np.log(500.0) - exponent / 14 * np.log(alpha)
        return down @ torch.tanh(up @ (z + ntk)) - exponent / 14 * 2 / alpha

    z = torch.from_numpy(np.log(GEOMETRY.inv_freq))
    h = 0.01
    for i in range(300):
        t = 1 + h * i
        a = change(t, z)
        b = change(t + h / 2, z + h / 2 * a)
        c = change(t + h / 2, z + h / 2 * b)
        z = z + h / 6 * (a + 2 * b + 2 * c + change(t + h, z + h * c))
    weight = torch.linspace(-1, 2, 8).double()
    expected = torch.autograd.grad((z * weight).sum(), (up, down))
    solved = ode.solve(up, down, GEOMETRY, 4).log()
    gradients = torch.autograd.grad((solved * weight).sum(), (up, down))
    assert torch.allclose(solved, z, atol=1e-8)
    for one, other in zip(gradients, expected):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-7)
        assert one.abs().max() > 1e-3
