"""What a caller may give the mathematics by mistake: refused by an InputError, or right; nothing
else."""

import numpy as np
import pytest
import torch

from core import rope
from core.angles import MAX_LENGTH, angle_distribution
from core.clex import ode
from core.disturbance import disturbance, select_interpolated, strategy_disturbance
from core.errors import InputError
from core.geometry import RopeGeometry

GEOMETRY = RopeGeometry(8, 10000.0, 64)
THETA = GEOMETRY.inv_freq
NAN, INF = float("nan"), float("inf")
NO_NUMBERS = (None, "64", True, NAN, INF, -INF, [64], {}, 1j, object())
NO_ARRAYS = (
    None,
    "θ",
    [NAN],
    [INF],
    ["a"],
    [None],
    [[1.0], [1.0, 2.0]],
    [1j],
    {},
    [True],
    object(),
)
P = np.full((4, 360), 1 / 360)
D = np.linspace(0, 1, 4)

CALLS = {
    "inverse frequencies": (
        lambda x: angle_distribution(x, 64),
        (*NO_ARRAYS, 0.5, [-1.0], [1e300], [[0.5]]),
    ),
    "length": (
        lambda x: angle_distribution(THETA, x),
        (*NO_NUMBERS, 0, -1, 1.5, 1e300, 10**400, MAX_LENGTH + 1),
    ),
    "intervals": (lambda x: angle_distribution(THETA, 64, x), (*NO_NUMBERS, 0, 1, -360, 2.5)),
    "an extended distribution": (
        lambda x: disturbance(x, P),
        (*NO_ARRAYS, 0.5, P[0], P[:, :90], -P, P * NAN),
    ),
    "a pre-trained distribution": (lambda x: disturbance(P, x), (*NO_ARRAYS, P[:3], -P)),
    "convention": (lambda x: disturbance(P, P, x), (None, "", 1, ["released"])),
    "epsilon": (lambda x: disturbance(P, P, epsilon=x), (*NO_NUMBERS, -1e-8)),
    "a strategy's factor": (
        lambda x: strategy_disturbance(THETA, 64, x),
        (*NO_NUMBERS, 0, 0.5, 1e300),
    ),
    "D_I": (lambda x: select_interpolated(x, D), (*NO_ARRAYS, 0.5, D[:2], [D, D])),
    "D_E": (lambda x: select_interpolated(D, x), (*NO_ARRAYS, 0.5, D[:2])),
    "threshold": (lambda x: select_interpolated(D, D, x), NO_NUMBERS),
    "n̂": (lambda x: select_interpolated(D, D, n_hat=x), (*NO_NUMBERS[1:], 2.5, 3, -2, 10)),
    "head dimension": (lambda x: RopeGeometry(x, 1e4, 64), (*NO_NUMBERS, 0, 7, -8, 2.5, 1e300)),
    "base": (lambda x: RopeGeometry(8, x, 64), (*NO_NUMBERS, 0, 1, -1e4)),
    "context length": (lambda x: RopeGeometry(8, 1e4, x), (*NO_NUMBERS, 0, -64, 1.5)),
    "geometry": (lambda x: rope.scale(x, rope.TIME_REFERENCE, 2), NO_NUMBERS),
    "method": (lambda x: rope.scale(GEOMETRY, x, 2), NO_NUMBERS),
    "factor": (
        lambda x: rope.scale(GEOMETRY, rope.PROPOSED, x),
        (*NO_NUMBERS, 0, 1, -2, 1.001, 1e300, 1.7e308),
    ),
    "t": (lambda x: ode.solve(torch.ones(6, 4), torch.ones(4, 6), GEOMETRY, x), (*NO_NUMBERS, 0.5)),
    "a single pair": (
        lambda x: ode.solve(torch.ones(2, 1), torch.ones(1, 2), RopeGeometry(2, 1e4, 64), x),
        (2,),
    ),
    "matrices": (
        lambda x: ode.solve(x, torch.ones(4, 6), GEOMETRY, 2.0),
        (torch.ones(6), torch.ones(6, 3)),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_cannot_be_meant_is_refused(name):
    call, bad = CALLS[name]
    for value in bad:
        with pytest.raises(InputError) as refused:
            call(value)
        assert str(refused.value).count("\n") == 0, value


@pytest.mark.parametrize("method", rope.METHODS)
def test_an_option_of_a_wrong_type_is_refused_or_makes_a_sound_scaling(method):
    for option in rope.method_options(method):
        for value in (*NO_NUMBERS, -1, 0, 10**30, 1e300, 3, 0.5):
            try:
                scaling = rope.scale(GEOMETRY, method, 2, **{option: value})
            except InputError:
                continue
            assert scaling.inv_freq.shape == scaling.interpolated.shape == (4,), (option, value)
            assert np.isfinite(scaling.inv_freq).all() and np.isfinite(scaling.attention_factor), (
                option,
                value,
            )
