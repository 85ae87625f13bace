"""The released code's histogram, including its rounding, to reproduce the published table to the
last digit.

The authors' program (github.com/1180301012/DPRoPE) computes θ, positions and angles in float32,
takes the angle modulo a float32 2π, and starts every count at the smallest normal float16. Rounding
then moves positions across the intervals' boundaries, so use this only to compare with the
published numbers, and :mod:`core.angles` for everything else.
"""

from __future__ import annotations

import numpy as np

from .angles import real_array
from .errors import InputError, check_whole
from .geometry import RopeGeometry

MAX_LENGTH = 2**24  # float32 cannot represent every position beyond this
COUNT_OFFSET = np.float32(np.finfo(np.float16).tiny)


def inv_freq_float32(geometry: RopeGeometry) -> np.ndarray:
    """θ_i in float32 arithmetic, shape [pairs]; the same on every machine.

    The power is computed in float64 and rounded, because NumPy's float32 power differs in its last
    bit between processors, which moves angles by whole intervals at high positions.
    """
    if geometry.frequencies is not None:
        return geometry.inv_freq.astype(np.float32)
    exponent = np.arange(0, geometry.head_dim, 2, dtype=np.float32) / np.float32(geometry.head_dim)
    power = np.float64(np.float32(geometry.base)) ** exponent.astype(np.float64)
    return np.float32(1) / power.astype(np.float32)


def angle_distribution_float32(
    inv_freq: np.ndarray, length: int, intervals: int = 360
) -> np.ndarray:
    """P_L^i with float32 rounding and the offset in every count: float32 array [pairs, intervals].

    As in the released code, rows sum to slightly more than 1 and hold no zero, so use epsilon = 0
    with them.

    Raises:
        InputError: the inverse frequencies are not an array [pairs], or the length or number of
            intervals is out of range.
    """
    inv_freq = real_array(inv_freq, "the inverse frequencies")
    if inv_freq.ndim != 1:
        raise InputError(
            f"the inverse frequencies have the shape {inv_freq.shape}; give an array [pairs]."
        )
    length = check_whole(length, "the context length in positions", 1, MAX_LENGTH)
    intervals = check_whole(intervals, "the number of intervals b", 2)
    two_pi = np.float32(2 * np.pi)
    angles = np.arange(length, dtype=np.float32) * np.asarray(inv_freq, dtype=np.float32)[:, None]
    interval = np.floor(np.float32(intervals / (2 * np.pi)) * np.mod(angles, two_pi)).astype(
        np.int64
    )
    # Rounding can push an angle just below 2π into interval b, where the released code would fail.
    np.minimum(interval, intervals - 1, out=interval)
    counts = np.stack([np.bincount(row, minlength=intervals) for row in interval]).astype(
        np.float32
    )
    return (counts + COUNT_OFFSET) / np.float32(length)
