"""The script that computes from a geometry."""

import numpy as np
import pytest

from core.disturbance import disturbance as kl
from core.rope import scale
from experiments import base_models, disturbance
from tests.core.test_angles import brute_force
from tests.models import checkpoint

TINY = base_models.MODELS["tiny"].geometry


def row(out, name):
    """The numbers after a method's name, of each factor."""
    return [
        line.removeprefix(name).split()
        for line in out.splitlines()
        if line.startswith(f"{name}   ")
    ]


def test_averages_are_those_of_a_plain_count(call):
    """Of both conventions, and of the pairs that the method divides."""
    status, out, err = call("disturbance", "--model", "tiny", "--method", "dprope", "--factor", 2)
    assert status == 0, err
    scaling = scale(TINY, "dprope", 2)
    before, after = (
        np.array([brute_force(theta, length, 360) for theta in inv_freq]) / length
        for inv_freq, length in ((TINY.inv_freq, 1024), (scaling.inv_freq, 2048))
    )
    ((n_hat, released, _),) = row(out, "dprope at t = 0")
    assert float(released) == pytest.approx(1e3 * kl(after, before).mean(), abs=0.006)
    assert int(n_hat) == 2 * np.isclose(TINY.inv_freq / scaling.inv_freq, 2).sum()


def test_the_papers_numbers_stand_beside_their_own_way_of_counting(call):
    _, out, _ = call("disturbance", "--model", "llama2-7b", "--method", "pi", "yarn", "dprope")
    names = {"pi": "pi", "yarn": "yarn", "dprope": "dprope at t = 0"}
    for method, name in names.items():
        for factor, (*_, float32, printed) in zip((2, 4), row(out, name), strict=True):
            assert (
                float(printed)
                == disturbance.published()[method, factor]
                == pytest.approx(float(float32), rel=5e-3)
            )


def test_a_checkpoint_of_ones_own_has_one_factor(call, tmp_path):
    status, out, err = call(
        "disturbance", "--model", checkpoint(tmp_path / "toy"), "--method", "pi"
    )
    assert status == 0 and len(row(out, "pi")) == 1, err
