"""The covered length: exact for the readers that it compares with, against a double loop, and under a lean."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import entropy

from core.covered import covered_length, reader
from core.errors import InputError
from core.relative import bin_edges


def by_loop(reach, edges):
    """Every query's own shares, 1/(Δ + 1) up to its reach, averaged and binned."""
    length = edges[-1]
    share = np.zeros(length)
    for query in range(length):
        seen = [distance for distance in range(query + 1) if distance < reach]
        whole = sum(1 / (distance + 1) for distance in seen)
        for distance in seen:
            share[distance] += 1 / (distance + 1) / whole / length
    return np.array([share[start:end].sum() for start, end in pairwise(edges)])


@pytest.mark.parametrize("reach", [1, 7, 100, 150])
def test_a_reader_is_what_a_double_loop_finds(reach):
    edges = bin_edges(150)
    np.testing.assert_allclose(reader(reach, edges), by_loop(reach, edges), atol=1e-12)


@pytest.mark.parametrize("length", [100, 1024, 8192])
def test_a_reader_is_found_by_its_own_length(length):
    edges = bin_edges(length)
    for reach in edges[1::7]:
        assert covered_length(edges, reader(reach, edges), length) == reach


def test_it_is_the_least_divergence():
    edges = bin_edges(500)
    mass = reader(500, edges) * np.random.default_rng(0).uniform(0.2, 2, len(edges) - 1)
    divergences = {int(end): entropy(reader(end, edges), mass / mass.sum()) for end in edges[1:]}
    assert covered_length(edges, mass, 500) == min(divergences, key=divergences.get)


def leaning(length, exponent):
    """Scale-free, but for a lean towards near tokens."""
    edges = bin_edges(length)
    middle = np.sqrt(np.maximum(edges[:-1], 0.5) * edges[1:])
    return edges, reader(length, edges) * middle**-exponent


@pytest.mark.parametrize("exponent", [-1, -0.5, 0.1, 0.2])
def test_a_lean_is_no_break(exponent):
    """ln g(ℓ) = mean(ln g) − 1 has no solution up to L = 8192 where the exponent is below 2 / ln L = 0.22."""
    assert covered_length(*leaning(8192, exponent), 8192) == 8192


@pytest.mark.parametrize(("drop", "breaks"), [(2, False), (4, True)])
def test_a_break_shows_where_it_is_deeper_than_e(drop, breaks):
    edges = bin_edges(8192)
    place = edges[np.searchsorted(edges, 2048)]
    mass = reader(8192, edges)
    mass[edges[1:] > place] /= drop
    assert covered_length(edges, mass, 8192) == (place if breaks else 8192)


def test_uniform_attention_covers_all():
    edges = bin_edges(1024)
    distance = np.arange(1024)
    share = np.cumsum((1 / (distance + 1))[::-1])[::-1]  # the mean over queries of 1 / (position + 1)
    assert covered_length(edges, np.add.reduceat(share, edges[:-1]), 1024) == 1024


def test_a_profile_may_leave_out_the_query_itself():
    edges = bin_edges(1024, first=1)
    assert covered_length(edges, reader(305, edges), 1024) == edges[np.searchsorted(edges, 305)]


@pytest.mark.parametrize(
    ("distances", "mass", "length"),
    [
        ([0, 1, 10], [0.5, 0.5], 11),
        ([0, 1, 10], [0.5, 0.5], 10.5),
        ([0, 1, 10], [0.5, 0.5], "10"),
        ([0, 1, 10], [0.0, 1.0], 10),
        ([0, 1, 10], [0.5], 10),
        ([0, 10, 1], [0.5, 0.5], 10),
    ],
)
def test_what_is_no_profile_of_that_length_is_refused(distances, mass, length):
    with pytest.raises(InputError) as refused:
        covered_length(distances, mass, length)
    assert "\n" not in str(refused.value)
