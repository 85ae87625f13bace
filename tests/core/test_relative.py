"""The disturbance that sees distance: against loops over every distance, and limits worked by hand."""

import json
import math
import time

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from core.errors import InputError
from core.geometry import RopeGeometry
from core.relative import Profile, averaged, bin_edges, least_disturbing, relative_disturbance

SMALL = RopeGeometry(head_dim=12, base=500.0, context_length=40)
MEASURED = Profile([0, 1, 2, 4, 9, 20, 40], [0.3, 0.2, 0.1, 0.15, 0.15, 0.1])
LAMBDAS = np.array([1.0, 1.25, 2.0, 2.5])


def by_loop(geometry, factor, lambdas, weight):
    """weight: of any distance, also between whole numbers."""
    length, longer = geometry.context_length, round(geometry.context_length * factor)
    found = np.zeros((geometry.pairs, len(lambdas)))
    for pair in range(geometry.pairs):
        theta = geometry.base ** (-2 * pair / geometry.head_dim)
        for place, value in enumerate(lambdas):
            total = 0.0
            for distance in range(length):
                total += weight(distance) * (1 - math.cos(distance * (theta - theta / value)))
            for distance in range(length, longer):
                angle, arc = math.fmod(distance * theta / value, 2 * math.pi), length * theta
                if arc < 2 * math.pi and angle > arc:
                    delta = min(angle - arc, 2 * math.pi - angle)
                    total += weight(distance / factor) / factor * (1 - math.cos(delta))
            found[pair, place] = total
    return found


def weight_of(profile):
    def weight(distance):
        for start, end, mass in zip(profile.distances, profile.distances[1:], profile.mass):
            if start <= distance < end:
                return mass / (end - start)
        return 0.0

    return weight


@pytest.mark.parametrize("factor", [1.5, 2, 3.7])
@pytest.mark.parametrize("profile", [None, MEASURED])
def test_it_is_what_a_loop_over_every_distance_finds(factor, profile):
    expected = by_loop(SMALL, factor, LAMBDAS, weight_of(profile or Profile.scale_free(40)))
    np.testing.assert_allclose(relative_disturbance(SMALL, factor, LAMBDAS, profile), expected, atol=1e-12)


def test_more_distances_than_are_read_change_little():
    geometry, lambdas = RopeGeometry(6, 30000.0, 3000), np.array([1.0, 1.6])
    profile = Profile(MEASURED.distances * 75, MEASURED.mass)
    expected = by_loop(geometry, 2, lambdas, weight_of(profile))
    np.testing.assert_allclose(relative_disturbance(geometry, 2, lambdas, profile), expected, rtol=1e-5, atol=1e-9)


def test_each_pair_can_have_its_own():
    together = relative_disturbance(SMALL, 2, LAMBDAS, MEASURED)
    own = np.arange(SMALL.pairs) % len(LAMBDAS)
    picked = together[np.arange(SMALL.pairs), own]
    alone = relative_disturbance(SMALL, 2, LAMBDAS[own][:, None], MEASURED)[:, 0]
    np.testing.assert_allclose(alone, picked, rtol=1e-12)
    assert averaged(SMALL, 2, LAMBDAS[own], MEASURED) == pytest.approx(picked.mean())


def test_scale_free_is_one_over_the_distance():
    profile = Profile.scale_free(1000)
    start, end = profile.distances[:-1], profile.distances[1:]
    assert start[0] == 1 and end[-1] == 1000 and profile.mass.sum() == pytest.approx(1)
    assert len(profile.mass) <= 64
    whole = sum(1 / d for d in range(1, 1000))
    for first, last, mass in zip(start, end, profile.mass):
        assert mass == pytest.approx(sum(1 / d for d in range(first, last)) / whole)


@pytest.mark.parametrize("length", [2, 3, 64, 1000, 8192, 10**6])
def test_edges_are_whole_and_even_in_the_logarithm(length):
    edges = bin_edges(length)
    assert edges[:2].tolist() == [0, 1] and edges[-1] == length and len(edges) <= 65 and (np.diff(edges) > 0).all()
    wide = edges[edges > 50]
    if len(wide) > 2:
        steps = np.diff(np.log(wide))
        assert steps.max() - steps.min() < 0.03


@pytest.mark.parametrize("factor", [2, 4])
def test_pairs_whose_circle_is_closed_are_kept(factor):
    geometry = RopeGeometry(64, 10000.0, 1024)
    chosen = least_disturbing(geometry, factor)
    closed = geometry.wavelength <= 1024
    assert closed.any() and not closed.all()
    assert (chosen[closed] == 1).all()
    assert (chosen >= 1).all() and (chosen <= factor).all() and (chosen[~closed] > 1).any()


@pytest.mark.parametrize("profile", [Profile([1, 2, 512], [1 - 1e-9, 1e-9]), Profile([0, 1, 512], [1.0, 0.0])])
def test_attention_to_near_tokens_alone_leaves_every_pair(profile):
    """Hardly anything lies beyond L / s, and nothing may move near tokens."""
    assert least_disturbing(RopeGeometry(32, 10000.0, 512), 2, profile) == pytest.approx(1, abs=0.01)


def test_attention_to_far_tokens_alone_moves_slow_pairs():
    """All weight in [0.99 L, L): an angle that moves by x costs x²/2 near, and one x beyond the arc the same far.

    With φ = Lθ → 0 the near term is φ²(1 − 1/λ)²/2 and the far one φ²(s/λ − 1)²/2; λ = (s² + 1) / (s + 1) is least.
    """
    geometry = RopeGeometry(8, 1e12, 1000)
    for factor in (2, 3):
        # w' is stretched, so that all of it lies in [0.99 L', L'): its total is w's.
        chosen = least_disturbing(geometry, factor, Profile([0, 990, 1000], [0.0, 1.0]))[-1]
        assert chosen == pytest.approx((factor**2 + 1) / (factor + 1), rel=0.01)


@pytest.mark.parametrize("factor", [2, 4])
def test_the_slowest_pairs_under_scale_free_attention(factor):
    """As θ → 0 both terms are quadratic and λ no longer depends on θ: with u = Δ/L and w = 1/(Δ ln L) it minimises
    ½(1 − 1/λ)² + ∫_λ^s (u/λ − 1)² / u du; not s, since moving what was seen costs as much as showing what was not."""

    def cost(value):
        beyond = quad(lambda u: (u / value - 1) ** 2 / u, value, factor)[0]
        return (1 - 1 / value) ** 2 / 2 + beyond

    expected = minimize_scalar(cost, bounds=(1, factor), method="bounded").x
    assert 1 < expected < factor
    found = least_disturbing(RopeGeometry(8, 1e7, 8192), factor)[-1]
    assert found == pytest.approx(expected, rel=0.02)


def test_it_takes_less_than_two_seconds():
    started = time.process_time()
    least_disturbing(RopeGeometry(128, 10000.0, 4096), 4)
    assert time.process_time() - started < 2


def test_a_profile_comes_from_a_record(tmp_path):
    file = tmp_path / "L=40.json"
    held = {"distances": MEASURED.distances.tolist(), "mass": (3 * MEASURED.mass).tolist(), "queries": 1}
    file.write_text(json.dumps(held))
    read = Profile.read(file)
    assert read.distances.tolist() == MEASURED.distances.tolist()
    np.testing.assert_allclose(read.mass, MEASURED.mass)


BROKEN = [
    "{",
    "[]",
    "{}",
    '{"distances": [0, 1]}',
    '{"distances": [0, 1], "mass": [0.5, 0.5]}',
    '{"distances": [0, 1, 1], "mass": [0.5, 0.5]}',
    '{"distances": [0, 1.5, 2], "mass": [0.5, 0.5]}',
    '{"distances": [-1, 1, 2], "mass": [0.5, 0.5]}',
    '{"distances": [0, 1, 2], "mass": [0.5, -0.5]}',
    '{"distances": [0, 1, 2], "mass": [0, 0]}',
    '{"distances": [0, 1, 2], "mass": [1e308, 1e308]}',
    '{"distances": [0, 1, 2], "mass": [NaN, 1]}',
    '{"distances": [0, 1, 2], "mass": "ab"}',
    '{"distances": "abc", "mass": [0.5, 0.5]}',
    '{"distances": [[0, 1], [1, 2]], "mass": [0.5]}',
    '{"distances": [0], "mass": []}',
    '{"distances": {"0": 1}, "mass": [1]}',
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_profile_is_refused_by_its_name(tmp_path, content):
    file = tmp_path / "profile.json"
    file.write_text(content)
    with pytest.raises(InputError, match=r"profile\.json") as refused:
        Profile.read(file)
    assert "\n" not in str(refused.value)


def test_no_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="none.json"):
        Profile.read(tmp_path / "none.json")


@pytest.mark.parametrize("factor", [1, 0.5, float("nan"), "2", None])
def test_a_factor_that_extends_nothing_is_refused(factor):
    for refused in (lambda: least_disturbing(SMALL, factor), lambda: relative_disturbance(SMALL, factor, [1.0])):
        with pytest.raises(InputError):
            refused()


@pytest.mark.parametrize("lambdas", [[0.5], [[1.0]], 1.0, [float("inf")], "ab", np.ones((2, 3, 4))])
def test_what_is_no_factor_of_a_pair_is_refused(lambdas):
    with pytest.raises(InputError):
        relative_disturbance(SMALL, 2, lambdas)
    with pytest.raises(InputError):
        averaged(SMALL, 2, lambdas)


def test_a_profile_of_another_length_is_refused():
    with pytest.raises(InputError, match="40"):
        least_disturbing(RopeGeometry(12, 500.0, 64), 2, MEASURED)
