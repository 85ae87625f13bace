"""LongRoPE2's genetic search for the factors λ_i of a model (arXiv 2502.20082).

Only the factors from the critical pair c on are searched. They rise from pair to pair, from s on, and those of the
pairs before c follow from λ_c: λ_i = λ_c^(i/c). Operators and proportions are those of the authors' program
(J-shang/LongRoPE at 77c0a7d, evolution/), whose constants, written for s = 64, are taken relative to s here. Given the
same random numbers, it makes the same candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, check_whole

STARTS = 8  # candidates that the search begins with: LongRoPE2's rule for s, 17/16 s … 23/16 s
MOST = 2  # no factor is above 2s
# Of s: the distance of the grid of mutated factors, that of neighbours in the first candidates, and the farthest that a
# mutation puts the last pair from its neighbour.
GRID, RISE, LAST = 1 / 6400, 1 / 640, 1 / 16
CHANGED = 0.3  # the share of pairs that a mutation draws anew
TRIES = 20  # of crossing two candidates, before one is mutated instead
SWEEPS = 10_000  # over all pairs for one mutation, far more than it takes where there are new candidates


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        factors: λ_i of the candidate with the least loss, float64 [pairs].
        losses: of every candidate in the order of the search; the first is LongRoPE2's rule, but for its rise.
        generations: the least loss in the first population and after each generation.
    """

    factors: np.ndarray
    losses: list[float]
    generations: list[float]


def search(
    pairs: int,
    critical: int,
    factor: float,
    loss: Callable[[np.ndarray], float],
    population: int = 128,
    generations: int = 60,
    seed: int = 0,
) -> Found:
    """Search for the factors of least loss.

    Each generation is the best quarter of the one before, an eighth of the population made by mutating one of these,
    and an eighth made by crossing two of them.

    Args:
        pairs: d/2.
        critical: c, below `pairs`.
        factor: s.
        loss: of factors λ_i, float64 [pairs].
        population: how many candidates are made before the first generation, at least 16.

    Raises:
        InputError: the population is too small, no pair is to be searched, or hardly any candidate is new.
    """
    if check_whole(population, "the population", 1) < 2 * STARTS:
        raise InputError(f"of a population of {population}, too few can be crossed; give {2 * STARTS} or more.")
    if not 1 <= critical < pairs:
        raise InputError(f"the critical pair is {critical}; to search from it on, it must be from 1 to {pairs - 1}.")
    return _Search(pairs, critical, factor, loss, seed).run(population, generations)


class _Search:
    """A candidate is its factors, float64 [pairs]; its number is its place among all candidates."""

    def __init__(
        self, pairs: int, critical: int, factor: float, loss: Callable[[np.ndarray], float], seed: int
    ) -> None:
        self._pairs, self._critical, self._factor, self._loss = pairs, critical, factor, loss
        self._random = np.random.RandomState(seed)  # the generator of the authors' program
        self._candidates: list[np.ndarray] = []
        self._losses: list[float] = []

    def run(self, population: int, generations: int) -> Found:
        rise = RISE * self._factor * (np.arange(self._pairs) - self._critical)
        for start in range(STARTS):
            self._add(self._followed(self._factor * (1 + start / 16) + rise))
        for number in range(population - STARTS):
            self._add(self._mutated(number))
        alive, least = list(range(population)), []
        for _ in range(generations):
            parents = self._best(alive, population // 4)
            least.append(self._losses[parents[0]])
            alive = list(parents)
            for _ in range(population // 8):
                alive.append(self._add(self._mutated(parents[self._random.randint(len(parents))])))
            for _ in range(population // 8):
                one, other = sorted(self._random.choice(len(parents), 2, replace=False))
                crossed = self._crossed(parents[one], parents[other])
                alive.append(self._add(self._mutated(parents[one]) if crossed is None else crossed))
        best = self._best(alive, 1)[0]
        return Found(self._candidates[best], self._losses, [*least, self._losses[best]])

    def _best(self, alive: list[int], count: int) -> list[int]:
        return sorted(alive, key=self._losses.__getitem__)[:count]

    def _add(self, candidate: np.ndarray) -> int:
        self._candidates.append(candidate)
        self._losses.append(self._loss(candidate))
        return len(self._losses) - 1

    def _followed(self, candidate: np.ndarray) -> np.ndarray:
        """The candidate with the factors of the pairs before c that follow from λ_c."""
        c = self._critical
        return np.append(candidate[c] ** (np.arange(c) / c), candidate[c:])

    def _mutated(self, number: int) -> np.ndarray:
        """A new candidate: some factors of this one drawn anew between those of their neighbours."""
        step, candidate = GRID * self._factor, self._candidates[number]
        for _ in range(SWEEPS):
            for pair in range(self._critical, self._pairs):
                if self._random.rand() < CHANGED:
                    low, last = candidate[pair - 1], pair + 1 == self._pairs
                    high = low + LAST * self._factor if last else candidate[pair + 1]
                    low, high = np.clip((low, high), self._factor, MOST * self._factor)
                    first = low // step * step + (0 if low % step < 1e-10 else step)
                    choices = np.arange(first, high // step * step + step, step)
                    if len(choices):
                        candidate = candidate.copy()
                        candidate[pair] = choices[self._random.randint(0, len(choices))]
                        candidate = self._followed(candidate)
            if self._is_new(candidate):
                return candidate
        raise InputError(f"after {len(self._losses)} candidates hardly any is new; give fewer generations.")

    def _crossed(self, one: int, other: int) -> np.ndarray | None:
        """The first with factors of the second; None if some tries make none whose factors rise.

        As in the authors' program, it is compared with earlier ones before the pairs before c follow, so it may be one.
        """
        first, second = self._candidates[one], self._candidates[other]
        if np.allclose(first, second):
            return None
        candidate = first.copy()
        for _ in range(TRIES):
            for pair in range(self._critical, self._pairs):
                if self._random.rand() < CHANGED:
                    if self._random.rand() < 0.5:
                        candidate[pair] = second[pair]
                    if self._is_new(candidate):
                        return self._followed(candidate)
        return None

    def _is_new(self, candidate: np.ndarray) -> bool:
        """Whether its factors rise and were not measured yet."""
        known = np.isclose(self._candidates, candidate).all(axis=1).any()
        return not known and bool((np.diff(candidate) > 0).all())
