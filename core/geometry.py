"""The RoPE that a model was pre-trained with, and the result of a scaling method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .errors import InputError, check_number, check_whole

LARGEST = 2**16  # dimensions of a head, far more than any model has


@dataclass(frozen=True)
class RopeGeometry:
    """The RoPE parameters of pre-training.

    Attributes:
        head_dim: d, the number of *rotated* dimensions of a head (a partial rotary factor already applied).
        base: θ_i = base^(−2i/d) radians per position (equation 1).
        context_length: L, the pre-training length in tokens.
    """

    head_dim: int
    base: float
    context_length: int

    def __post_init__(self) -> None:
        check_number(self.base, "the RoPE base", above=1)
        # As integers, because NumPy does not take 64.0 for a number of dimensions.
        object.__setattr__(self, "head_dim", check_whole(self.head_dim, "the rotary head dimension", 2, LARGEST))
        object.__setattr__(self, "context_length", check_whole(self.context_length, "the context length in tokens", 1))
        if self.head_dim % 2:
            raise InputError(f"the rotary head dimension is {self.head_dim}; RoPE rotates pairs, so it must be even.")

    @property
    def pairs(self) -> int:
        """The number of dimension pairs, d/2."""
        return self.head_dim // 2

    @property
    def inv_freq(self) -> np.ndarray:
        """θ_i in radians per position, float64 [pairs]."""
        return self.base ** -(np.arange(0, self.head_dim, 2) / self.head_dim)

    @property
    def wavelength(self) -> np.ndarray:
        """λ_i = 2π/θ_i in positions, float64 [pairs]."""
        return 2 * np.pi / self.inv_freq


@dataclass(frozen=True)
class RopeScaling:
    """The result of scaling a geometry by a method.

    Attributes:
        inv_freq: the scaled θ̂_i in radians per position, float64 [pairs].
        attention_factor: multiplies both cos and sin (YaRN's temperature; 1 for methods without one).
        interpolated: bool [pairs], True where θ̂_i = θ_i/s.
        install: (model, geometry, factor) → the model; for a method that needs more in a model than fixed frequencies.
        stock: a ``rope_type`` of Hugging Face configurations that describes the scaling fully, with that type's other
            keys; None if only a list of one factor per pair can.
    """

    inv_freq: np.ndarray
    attention_factor: float
    interpolated: np.ndarray
    install: Callable | None = None
    stock: dict | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "attention_factor", check_number(self.attention_factor, "the attention factor", above=0)
        )
