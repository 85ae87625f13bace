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
    """The numbers before a method's name, of each factor."""
    lines = [line for line in out.splitlines() if line.endswith(f" {name}")]
    return [line.removesuffix(name).split() for line in lines]


def test_averages_are_those_of_a_plain_count(done):
    """Of both conventions, and of the pairs that the method divides."""
    out = done("disturbance --model tiny --method dprope --factor 2")
    inv_freq = scale(TINY, "dprope", 2).inv_freq
    before = np.array([brute_force(theta, 1024, 360) for theta in TINY.inv_freq]) / 1024
    after = np.array([brute_force(theta, 2048, 360) for theta in inv_freq]) / 2048
    ((n_hat, released, _),) = row(out, "dprope")
    assert float(released) == pytest.approx(1e3 * kl(after, before).mean(), abs=0.006)
    assert int(n_hat) == 2 * np.isclose(TINY.inv_freq / inv_freq, 2).sum()


@pytest.mark.parametrize("method", ["pi", "yarn", "dprope"])
def test_the_papers_numbers_stand_beside_their_own_way_of_counting(done, method):
    rows = row(done("disturbance --model llama2-7b --method", method), method)
    printed = [float(words[-1]) for words in rows]
    assert printed == pytest.approx([float(words[-2]) for words in rows], rel=5e-3)
    assert printed == [disturbance.published()[method, factor] for factor in (2, 4)]


def test_a_checkpoint_of_ones_own_has_one_factor(done, tmp_path):
    out = done("disturbance --method pi --model", checkpoint(tmp_path / "toy"))
    assert len(row(out, "pi")) == 1
