"""The two n̂ that DPRoPE is measured at: the paper's, a share of d, and the covering one, which follows from θ and L."""

import numpy as np
import pytest

from analysis import results
from core import rope
from experiments import base_models

EVERY = [measured.model for measured in results.every()]
SET = [(model, factor) for model in EVERY if model.name == "tiny" for factor in model.n_hat]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.name)
def test_the_papers_n_hat_is_the_papers_share_of_the_head_dimension(model):
    d = model.geometry.head_dim
    assert model.n_hat == {2: d * 80 // 128, 4: d * 64 // 128}


@pytest.mark.parametrize(("model", "factor"), SET, ids=lambda value: getattr(value, "name", value))
def test_the_covering_n_hat_is_the_least_that_interpolates_every_wavelength_beyond_the_context(model, factor):
    geometry, n_hat = model.geometry, base_models.MODELS[model.name].covering(factor)
    beyond = set(np.flatnonzero(2 * np.pi / geometry.inv_freq > geometry.context_length))

    def interpolated(count):
        return set(np.flatnonzero(rope.scale(geometry, rope.PROPOSED, factor, n_hat=count).interpolated))

    assert beyond <= interpolated(n_hat) and not beyond <= interpolated(n_hat - 2)
