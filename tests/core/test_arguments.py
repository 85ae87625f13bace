"""What a caller may give the mathematics by mistake: refused by an InputError, or right; nothing
else."""

from functools import partial

import numpy as np
import pytest
import torch

from core import rope
from core.angles import MAX_LENGTH, angle_distribution, real_array
from core.clex import ode
from core.disturbance import disturbance, select_interpolated, strategy_disturbance
from core.errors import InputError, check_number, check_whole
from core.geometry import RopeGeometry

GEOMETRY = RopeGeometry(8, 10000.0, 64)
THETA = GEOMETRY.inv_freq
NAN = float("nan")
INF = float("inf")
NO_NUMBERS = (None, "64", True, NAN, INF, -INF, [64], {}, 1j, object())
NO_ARRAYS = (None, "θ", [NAN], [INF], [None], [[1.0], [1.0, 2.0]], [1j], {}, [True], object())
P = np.full((4, 360), 1 / 360)
D = np.linspace(0, 1, 4)
UP = torch.ones(6, 4)


def test_what_is_no_number_and_no_array_of_numbers_is_refused():
    for value in NO_NUMBERS:
        with pytest.raises(InputError):
            check_number(value, "it")
        with pytest.raises(InputError):
            check_whole(value, "it", 1)
    for value in NO_ARRAYS:
        with pytest.raises(InputError):
            real_array(value, "it")


@pytest.mark.parametrize(
    "function, arguments",
    [
        (angle_distribution, ([-1.0], 64)),
        (angle_distribution, ([[0.5]], 64)),
        (angle_distribution, (THETA, 0)),
        (angle_distribution, (THETA, MAX_LENGTH + 1)),
        (angle_distribution, (THETA, 64, 1)),
        (disturbance, (P, P[:, :90])),
        (disturbance, (0.5, 0.5)),
        (disturbance, (-P, P)),
        (disturbance, (P, P, "")),
        (disturbance, (P, P, "released", -1e-8)),
        (strategy_disturbance, (THETA, 64, 0.5)),
        (select_interpolated, (D[:2], D)),
        (select_interpolated, ([D, D], [D, D])),
        (select_interpolated, (D, D, 0.1, 2)),
        (select_interpolated, (D, D, 0.0, 10)),
        (RopeGeometry, (7, 1e4, 64)),
        (RopeGeometry, (8, 1, 64)),
        (RopeGeometry, (8, 1e16, 64)),
        (RopeGeometry, (8, 1e4, 0)),
        (rope.scale, (None, rope.TIME_REFERENCE, 2)),
        (rope.scale, (GEOMETRY, None, 2)),
        (rope.scale, (GEOMETRY, rope.PROPOSED, 1.7e308)),
        (partial(rope.scale, file=""), (GEOMETRY, "factors", 2)),
        (rope.scale, (GEOMETRY, rope.PROPOSED, 2**26)),  # of 64 tokens, 2^32
        (ode.solve, (UP[:2, :1], UP[:2, :1].T, RopeGeometry(2, 1e4, 64), 2.0)),
    ],
)
def test_what_cannot_be_meant_is_refused(function, arguments):
    with pytest.raises(InputError) as refused:
        function(*arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("method", rope.METHODS)
def test_an_option_of_a_wrong_type_is_refused_or_makes_a_sound_scaling(method):
    for option in rope.method_options(method):
        for value in (*NO_NUMBERS, -1, 0, 10**30, 1e300, 3, 0.5):
            try:
                scaling = rope.scale(GEOMETRY, method, 2, **{option: value})
            except InputError:
                continue
            assert scaling.inv_freq.shape == scaling.interpolated.shape == (4,), (option, value)
            assert np.isfinite(scaling.inv_freq).all(), (option, value)
            assert np.isfinite(scaling.attention_factor), (option, value)
