"""The search's candidates keep its constraints, and it finds what is known to be best."""

import numpy as np
import pytest

from core.beyond.factor_search import search
from core.errors import InputError
from core.geometry import RopeGeometry
from core.rope import scale

PAIRS, CRITICAL, S = 12, 5, 4.0


def found(loss, **more):
    candidates = []

    def noted(factors):
        candidates.append(factors.copy())
        return loss(factors)

    return search(PAIRS, CRITICAL, S, noted, **{"population": 32, "generations": 10, **more}), np.array(candidates)


def away(target):
    return lambda factors: float(np.abs(factors - target).max())


def test_every_candidate_rises_from_s_on_and_decides_the_pairs_before():
    result, candidates = found(away(6.0))
    assert len(candidates) == len(result.losses) == 32 + 10 * 8
    assert (np.diff(candidates, axis=1) > 0).all()
    tail = candidates[:, CRITICAL:]
    grid = S / 6400
    assert tail.min() >= S and tail.max() <= 2 * S + 2 * grid
    before = tail[:, :1] ** (np.arange(CRITICAL) / CRITICAL)
    np.testing.assert_allclose(candidates[:, :CRITICAL], before, rtol=1e-12)
    assert len(np.unique(candidates[:32].round(9), axis=0)) == 32  # a mutation is new


def test_it_starts_at_longrope2s_rule():
    geometry = RopeGeometry(2 * PAIRS, 10000.0, 256)
    rule = geometry.inv_freq / scale(geometry, "longrope2", S, critical_pair=CRITICAL).inv_freq
    _, candidates = found(away(6.0), generations=0)
    np.testing.assert_allclose(candidates[0], rule, atol=S / 640 * PAIRS)


def test_the_least_loss_is_returned_and_more_generations_never_lose_it():
    target = np.linspace(4.2, 5.3, PAIRS - CRITICAL)
    result, candidates = found(lambda factors: float(np.abs(factors[CRITICAL:] - target).sum()), generations=40)
    assert min(result.losses) == result.generations[-1] < 0.6 * result.losses[0]
    np.testing.assert_array_equal(result.factors, candidates[np.argmin(result.losses)])
    assert len(result.generations) == 41 and (np.diff(result.generations) <= 0).all()


def test_the_seed_decides_everything():
    (_, first), (_, again), (_, other) = (found(away(6.0), seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("size, pair, named", [(15, CRITICAL, "15"), (32, PAIRS, str(PAIRS)), (32, 0, "0")])
def test_what_cannot_be_searched_is_refused(size, pair, named):
    with pytest.raises(InputError, match=named):
        search(PAIRS, pair, S, away(6.0), population=size)
