"""n̂ where it is set by hand follows from the model: the fewest pairs that cover every wavelength beyond L."""

import numpy as np
import pytest

from analysis import results
from core import rope

SET = [
    (measured, factor)
    for measured in results.every()
    if not measured.scale.name.startswith("llama2")  # the paper's own, of its section 4.1
    for factor in measured.scale.n_hat
]


@pytest.mark.parametrize(("measured", "factor"), SET, ids=lambda value: getattr(value, "scale", value))
def test_n_hat_is_the_least_that_interpolates_every_wavelength_beyond_the_context(measured, factor):
    geometry, n_hat = measured.scale.geometry, measured.scale.n_hat[factor]
    beyond = set(np.flatnonzero(2 * np.pi / geometry.inv_freq > geometry.context_length))

    def interpolated(count):
        return set(np.flatnonzero(rope.scale(geometry, rope.OURS, factor, n_hat=count).interpolated))

    assert beyond <= interpolated(n_hat) and not beyond <= interpolated(n_hat - 2)
