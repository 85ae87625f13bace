"""The RoPE that a model was trained with, and the result of a scaling method."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from .angles import real_array
from .errors import InputError, check_number, check_whole

LARGEST = 1e15  # of the numbers that configurations state; products of some are finite
_DIMENSIONS = 2**16  # of a head, far more than any model has
_FACTORS = (1e-3, 1e3)  # of attention, far from any that a method computes or learns


@dataclass(frozen=True)
class RopeGeometry:
    """The RoPE parameters that a model was trained with: plain ones, or those that its maker
    scaled.

    Attributes:
        head_dim: d, the number of *rotated* dimensions of a head (a partial rotary factor already
            applied).
        base: θ_i = base^(−2i/d) radians per position (equation 1), where RoPE is plain.
        context_length: L, the length in tokens that the model was trained for.
        frequencies: θ_i in radians per position where they do not follow from the base; None where
            RoPE is plain.
        attention_factor: multiplies both cos and sin before any scaling here.
        rope_type: what Hugging Face configurations call the scaling that `frequencies` come from.
    """

    head_dim: int
    base: float
    context_length: int
    frequencies: tuple[float, ...] | None = None
    attention_factor: float = 1.0
    rope_type: str = "default"

    def __post_init__(self) -> None:
        vars(self).update(
            base=check_number(self.base, "the RoPE base", above=1, most=LARGEST),
            attention_factor=check_number(self.attention_factor, "the attention factor", *_FACTORS),
            # As integers, because NumPy does not take 64.0 for a number of dimensions.
            head_dim=check_whole(self.head_dim, "the rotary head dimension", 2, _DIMENSIONS),
            context_length=check_whole(self.context_length, "the context length in tokens", 1),
        )
        if self.head_dim % 2:
            raise InputError(
                f"the rotary head dimension is {self.head_dim}; RoPE rotates pairs, so it must be "
                f"even."
            )
        if self.frequencies is not None:
            frequencies = real_array(self.frequencies, "the inverse frequencies")
            if frequencies.shape != (self.pairs,) or (frequencies <= 0).any():
                raise InputError(
                    f"the inverse frequencies must be {self.pairs} positive numbers, one for each "
                    f"pair."
                )
            vars(self)["frequencies"] = tuple(frequencies.tolist())

    @property
    def pairs(self) -> int:
        """The number of dimension pairs, d/2."""
        return self.head_dim // 2

    @property
    def inv_freq(self) -> np.ndarray:
        """θ_i in radians per position, float64 [pairs]."""
        return self.of_base if self.frequencies is None else np.array(self.frequencies)

    @property
    def of_base(self) -> np.ndarray:
        """base^(−2i/d), float64 [pairs]; configurations state a scaling relative to it."""
        return self.base ** -(np.arange(0, self.head_dim, 2) / self.head_dim)

    @property
    def wavelength(self) -> np.ndarray:
        """λ_i = 2π/θ_i in positions, float64 [pairs]."""
        return 2 * np.pi / self.inv_freq

    def check_base(self) -> float:
        """The base, for a method that changes it; InputError if RoPE was scaled before, for θ_i
        then has none."""
        if self.frequencies is not None:
            raise InputError(
                f"this RoPE was scaled before (rope_type {self.rope_type!r}), so its frequencies "
                f"follow from no base, "
                "which NTK-aware scaling, the critical base and CLEX change; take a method that "
                "divides frequencies, "
                "such as pi, yarn or dprope."
            )
        return self.base

    def index_of(self, rotations: float) -> float:
        """The (real) pair index at which a pair turns so many times within L; of scaled RoPE,
        between the two pairs."""
        if self.frequencies is not None:
            return np.sum(self.context_length / self.wavelength > rotations) - 0.5
        span = np.log(self.context_length / (2 * np.pi * rotations))
        return self.head_dim * span / (2 * np.log(self.base))

    def to_dict(self) -> dict:
        """The attributes that differ from their defaults, as JSON has them; of plain RoPE d, the
        base and L."""
        values = {
            f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default
        }
        return json.loads(json.dumps(values))


@dataclass(frozen=True)
class RopeScaling:
    """The result of scaling a geometry by a method.

    Attributes:
        inv_freq: the scaled θ̂_i in radians per position, float64 [pairs].
        attention_factor: multiplies both cos and sin (YaRN's √(1/t); 1 for methods without
            one).
        interpolated: bool [pairs], True where θ̂_i = θ_i/s.
        install: (model, geometry, factor) → the model; for a method that needs more in a model than
            fixed frequencies.
        stock: a ``rope_type`` of Hugging Face configurations that describes the scaling fully, with
            that type's other keys; None if only a list of one factor per pair can.
    """

    inv_freq: np.ndarray
    attention_factor: float
    interpolated: np.ndarray
    install: Callable | None = None
    stock: dict | None = None

    def __post_init__(self) -> None:
        factor = check_number(self.attention_factor, "the attention factor", *_FACTORS)
        vars(self)["attention_factor"] = factor
