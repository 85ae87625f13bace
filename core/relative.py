"""A disturbance of relative positions: how far a scaled RoPE changes the rotations between tokens (beyond the paper).

The paper's disturbance compares the angles of single pairs over absolute positions. It cannot see that interpolation
changes the rotation between neighbouring tokens. This disturbance weighs each distance Δ = query − key by the share
w(Δ) of attention that goes there. For a pair that turns by θ per token, and by θ/λ once scaled, it has two terms:

- near, Σ_{Δ < L} w(Δ) (1 − cos(Δ(θ − θ/λ))): the change of rotation at the distances seen in pre-training;
- far, Σ_{L ≤ Δ < L'} w'(Δ) (1 − cos δ(Δ)): δ is how far the angle Δθ/λ lies, on the circle, from the arc [0, Lθ] that
  pre-training covered. It is zero where Lθ ≥ 2π, since that arc is the whole circle.

The far weights are w stretched by s, w'(Δ) = w(Δ/s)/s: in a text s times as long, attention is assumed to reach s times
as far. Without a measured profile, w is scale-free: w(Δ) ∝ 1/Δ for 1 ≤ Δ < L.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from . import files
from .angles import real_array
from .errors import InputError, check_number, check_whole
from .geometry import RopeGeometry

BINS = 64  # at most so many bins in a profile
POINTS = 2048  # the far term is evaluated at no more distances than this; more are summed in equal groups
GRID = 257  # the values of λ from 1 to s that are tried


def bin_edges(length: int, first: int = 0) -> np.ndarray:
    """The edges of at most 64 bins: whole numbers from `first` to L, evenly spaced in log Δ and rounded, int64."""
    check_whole(length, "the context length", 2)
    edges = np.unique(np.rint(np.geomspace(1, length, BINS)).astype(np.int64))
    return np.concatenate([[0], edges]) if first == 0 else edges


@dataclass(frozen=True)
class Profile:
    """The share of attention that goes to each distance.

    Attributes:
        distances: the edges of bins in tokens, ascending whole numbers [bins + 1]; a bin includes its lower edge and
            excludes its upper one.
        mass: the share in each bin [bins], normalised to sum to 1. All distances in a bin have the same share.

    Raises:
        InputError: the arrays are not such a profile.
    """

    distances: np.ndarray
    mass: np.ndarray

    def __post_init__(self) -> None:
        edges = real_array(self.distances, "the distances of the attention profile")
        mass = real_array(self.mass, "the shares of the attention profile")
        if edges.ndim != 1 or mass.shape != (len(edges) - 1,) or len(mass) < 1:
            raise InputError("an attention profile is n + 1 distances, the edges of n bins, and n shares; give both.")
        if (edges != np.rint(edges)).any() or (np.diff(edges) <= 0).any() or not 0 <= edges[0] <= edges[-1] < 2**53:
            raise InputError("an attention profile's distances are tokens; give ascending whole numbers from 0 on.")
        with np.errstate(over="ignore"):
            whole = mass.sum()
        if (mass < 0).any() or not 0 < whole < np.inf:
            raise InputError("an attention profile has a negative share or none above 0; give shares of attention.")
        object.__setattr__(self, "distances", edges.astype(np.int64))
        object.__setattr__(self, "mass", mass / whole)

    @classmethod
    def scale_free(cls, length: int) -> Profile:
        """w(Δ) ∝ 1/Δ for 1 ≤ Δ < L, in bins."""
        edges = bin_edges(length, first=1)
        return cls(edges, np.add.reduceat(1 / np.arange(1, length), edges[:-1] - 1))

    @classmethod
    def read(cls, file: Path | str) -> Profile:
        """Read a record of experiments.attention_distance, or any JSON object with "distances" and "mass".

        Raises:
            InputError: the file cannot be read, or holds no profile.
        """
        remedy = "measure it with `python -m experiments.attention_distance`"
        found = files.read_json(Path(file), remedy)
        try:
            return cls(found.get("distances"), found.get("mass"))
        except InputError as error:
            raise InputError(f"{file} holds no attention profile ({str(error).rstrip('.')}); {remedy}.") from error

    @property
    def density(self) -> np.ndarray:
        """w(Δ) of a single distance, [bins]."""
        return self.mass / np.diff(self.distances)

    def at(self, distance: np.ndarray) -> np.ndarray:
        """w at any distances, whole numbers or not; 0 outside the profile."""
        place = np.searchsorted(self.distances, distance, side="right")
        return np.concatenate([[0.0], self.density, [0.0]])[place]

    def check_length(self, length: int) -> None:
        """Raise InputError unless the profile was measured over a context of `length` tokens."""
        if self.distances[-1] != length:
            raise InputError(
                f"the attention profile reaches to {self.distances[-1]} tokens, and L is {length}; measure it at L."
            )


def relative_disturbance(
    geometry: RopeGeometry, factor: float, lambdas: ArrayLike, profile: Profile | None = None
) -> np.ndarray:
    """The sum of the near and the far term for each pair and each λ; each term is between 0 and 2.

    Args:
        geometry: the pre-trained RoPE.
        factor: s = L'/L > 1.
        lambdas: λ = θ/θ̂ ≥ 1; [n], the same for all pairs, or [pairs, n].
        profile: w, measured within L; None for the scale-free one.

    Returns:
        float64 array [pairs, n].

    Raises:
        InputError: a λ or the factor is out of range, or the profile has another length than L.
    """
    lambdas = real_array(lambdas, "the factors λ")
    if lambdas.ndim == 1:
        lambdas = np.broadcast_to(lambdas, (geometry.pairs, len(lambdas)))
    if lambdas.ndim != 2 or len(lambdas) != geometry.pairs or (lambdas < 1).any():
        raise InputError(
            f"the factors λ must be at least 1; give an array [n] for all pairs or [{geometry.pairs}, n] for each."
        )
    profile = _checked(geometry, factor, profile)
    return near(geometry, lambdas, profile) + far(geometry, factor, lambdas, profile)


def near(geometry: RopeGeometry, lambdas: np.ndarray, profile: Profile) -> np.ndarray:
    """Σ_{Δ < L} w(Δ) (1 − cos(Δ(θ − θ/λ))), [pairs, n]: within a bin the cosines sum in closed form.

    Where no angle exceeds 0.001 the closed form loses digits by cancellation; there 1 − cos x is x²/2 to seven digits.
    """
    moved = geometry.inv_freq[:, None] * (1 - 1 / lambdas)
    half = np.where(moved == 0, 1.0, np.sin(moved / 2))  # 0 < moved < θ ≤ 1 elsewhere
    total, squares = np.zeros_like(moved), 0.0
    for start, end, weight in zip(*map(np.float64, (profile.distances[:-1], profile.distances[1:], profile.density))):
        cosines = (np.sin((end - 0.5) * moved) - np.sin((start - 0.5) * moved)) / (2 * half)
        total += weight * (end - start - cosines)
        squares += weight * (_squares(end) - _squares(start))
    return np.where(moved * geometry.context_length < 1e-3, moved**2 / 2 * squares, total)


def _squares(end: float) -> float:
    """Σ Δ² over 0 ≤ Δ < end."""
    return end * (end - 1) * (2 * end - 1) / 6


def far(geometry: RopeGeometry, factor: float, lambdas: np.ndarray, profile: Profile) -> np.ndarray:
    """Σ_{L ≤ Δ < L'} w'(Δ) (1 − cos δ(Δ)), [pairs, n]."""
    length = geometry.context_length
    every = np.arange(length, round(length * factor), dtype=np.float64)
    groups = np.array_split(every, min(POINTS, len(every)))
    distance = np.array([group.mean() for group in groups])
    weight = np.array([profile.at(group / factor).sum() for group in groups]) / factor
    total = np.zeros_like(lambdas)
    for pair, theta in enumerate(geometry.inv_freq):
        arc = length * theta
        if arc < 2 * np.pi:
            angle = np.outer(theta / lambdas[pair], distance) % (2 * np.pi)
            beyond = np.where(angle <= arc, 0.0, np.minimum(angle - arc, 2 * np.pi - angle))
            total[pair] = 2 * np.sin(beyond / 2) ** 2 @ weight  # 1 − cos, without cancellation
    return total


def least_disturbing(geometry: RopeGeometry, factor: float, profile: Profile | None = None) -> np.ndarray:
    """Each pair's λ of least disturbance on a geometric grid over [1, s], the smallest in a tie; float64 [pairs]."""
    profile = _checked(geometry, factor, profile)
    grid = np.geomspace(1, factor, GRID)
    return grid[relative_disturbance(geometry, factor, grid, profile).argmin(axis=1)]


def averaged(geometry: RopeGeometry, factor: float, lambdas: ArrayLike, profile: Profile | None = None) -> float:
    """The mean disturbance over pairs for any choice of λ [pairs], such as a method's θ_i/θ̂_i."""
    chosen = real_array(lambdas, "the factors λ")
    if chosen.shape != (geometry.pairs,):
        raise InputError(f"the choice of λ is not an array [pairs]; give one λ for each of the {geometry.pairs} pairs.")
    return float(relative_disturbance(geometry, factor, chosen[:, None], profile).mean())


def _checked(geometry: RopeGeometry, factor: float, profile: Profile | None) -> Profile:
    check_number(factor, "the scaling factor")
    if factor <= 1:
        raise InputError(f"the scaling factor is {factor}; to extend the context give a number above 1, such as 2.")
    if profile is None:
        return Profile.scale_free(geometry.context_length)
    profile.check_length(geometry.context_length)
    return profile
