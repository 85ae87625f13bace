"""YaRN against transformers' own, and the paper's printed ramp against its equation."""

import numpy as np
import pytest
from hypothesis import given

from core.angles import angle_distribution
from core.disturbance import disturbance
from core.rope import scale
from tests.core.geometries import LLAMA2, factors, geometries, official


@given(geometries, factors)
def test_yarn_is_transformers_yarn(geometry, factor):
    parameters = {"factor": factor, "original_max_position_embeddings": geometry.context_length}
    inv_freq, attention_factor = official(geometry, "yarn", **parameters)
    ours = scale(geometry, "yarn", factor)
    assert ours.inv_freq == pytest.approx(inv_freq, rel=1e-5)
    assert ours.attention_factor == pytest.approx(attention_factor)


def test_yarn_ramp_of_llama2_runs_from_pair_20_to_46():
    divisor = LLAMA2.inv_freq / scale(LLAMA2, "yarn", 2).inv_freq
    assert divisor[:21] == pytest.approx(np.ones(21))
    assert divisor[46:] == pytest.approx(np.full(18, 2))
    assert (np.diff(divisor[20:47]) > 0).all()


def test_the_papers_printed_ramp_is_linear_in_rotations():
    ours = scale(LLAMA2, "yarn", 2, ramp="rotations").inv_freq
    for i, theta in enumerate(LLAMA2.inv_freq):
        r = 4096 * theta / (2 * np.pi)
        gamma = (r - 1) / 31
        expected = theta / 2 if r < 1 else theta if r > 32 else (1 - gamma) * theta / 2 + gamma * theta  # equation 4
        assert ours[i] == pytest.approx(expected)
    average = disturbance(angle_distribution(ours, 8192), angle_distribution(LLAMA2.inv_freq, 4096)).mean()
    assert 1e3 * average == pytest.approx(23.3, abs=0.05)
