"""Rotary angle distributions P_L^i, counted exactly (paper, section 3.1, equations 5-6).

Position m rotates pair i by m·θ_i. With b intervals, the angle m·θ_i mod 2π lies in interval

    k = floor(m·γ_i) mod b,    γ_i = b·θ_i / 2π.

Counting positions one at a time costs O(L') steps, and in floating point it misplaces positions
near a boundary. This module avoids both. Let p/q be the largest fraction not above γ_i with q < L'.
No fraction with a denominator below L' lies between the two, so floor(m·γ_i) = floor(m·p/q) for
every position m < L'. Replacing γ_i by p/q is therefore *exact*. The number of m < L' with (m·p mod
b·q) < k·q is a difference of two floor sums, which a Euclid-like recursion evaluates in O(log L')
integer steps.
"""

import functools
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError, check_whole

# π to 119 decimals (OEIS A000796): γ is then known to about 1e-115, and lengths up to 2^60 need
# 1e-40.
_PI_LOW = Fraction(
    "3.1415926535897932384626433832795028841971693993751058"
    "2097494459230781640628620899862803482534211706798"
    "214808651328230664"
)
_PI_HIGH = _PI_LOW + Fraction(1, 10**119)
MAX_LENGTH = 2**60
MAX_INTERVALS = 10**5  # each is a column of the result; 64 pairs take 10 s
MAX_INV_FREQ = 1e15  # radians per position; the digits of π above would do for far more


def angle_distribution(inv_freq: ArrayLike, length: int, intervals: int = 360) -> np.ndarray:
    """The frequency F_k^i(L) of rotary angles in each interval (equation 6).

    Args:
        inv_freq: θ_i in radians per position, shape [pairs]; taken as the exact value of each
            float.
        length: number of positions L; positions are 0 … L-1.
        intervals: b, the number of equal intervals of [0, 2π).

    Returns:
        float64 array [pairs, intervals]; every row sums to 1.

    Raises:
        InputError: a length, interval count or inverse frequency out of range.
    """
    return angle_counts(inv_freq, length, intervals) / int(length)


def angle_counts(inv_freq: ArrayLike, length: int, intervals: int = 360) -> np.ndarray:
    """How many of the positions 0 … length-1 fall in each interval: int64 array [pairs, intervals].

    Arguments and errors as in :func:`angle_distribution`. The counts are exact for any length up to
    2^60.
    """
    inv_freq = real_array(inv_freq, "the inverse frequencies")
    if inv_freq.ndim != 1 or not np.all((inv_freq >= 0) & (inv_freq <= MAX_INV_FREQ)):
        raise InputError(
            f"the inverse frequencies must be an array [pairs] of numbers from 0 to "
            f"{MAX_INV_FREQ:g}."
        )
    # As Python's integers, because NumPy's overflow.
    length = check_whole(length, "the context length in positions", 1, MAX_LENGTH)
    intervals = check_whole(intervals, "the number of intervals b", 2, MAX_INTERVALS)
    return _counts(tuple(inv_freq.tolist()), length, intervals).copy()


@functools.lru_cache(maxsize=256)  # methods share many: pre-training's, and those of one strategy
def _counts(inv_freq: tuple[float, ...], length: int, intervals: int) -> np.ndarray:
    fractions = [_floor_equivalent(theta, length, intervals) for theta in inv_freq]
    p, q = np.array(fractions, dtype=object).reshape(-1, 2).T
    modulus = intervals * q
    # The recursion's largest intermediate is about b·L²; past int64, the same code runs on Python
    # integers.
    dtype = np.int64 if 2 * intervals * length**2 < 2**63 else object
    p, q, modulus = (np.asarray(x, dtype=dtype)[:, None] for x in (p % modulus, q, modulus))

    boundaries = np.arange(intervals, dtype=dtype)
    # below[k] = |{m < L : m·p mod M < k·q}| = Σ floor(m·p / M) − Σ floor((m·p − k·q) / M)
    sums = _floor_sum(length, modulus, p, modulus - boundaries * q)
    below = sums[:, :1] - sums
    return np.diff(below, axis=1, append=length).astype(np.int64)


def real_array(values: ArrayLike, name: str) -> np.ndarray:
    """The values as float64. InputError, with `name` in its message, unless all are finite real
    numbers."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of unequal length
        array = np.array(None)
    if (array.dtype.kind not in "iuf" and array.size) or not np.isfinite(array).all():
        raise InputError(f"{name} are not all finite numbers; give an array of finite numbers.")
    return array.astype(np.float64)


def _floor_equivalent(theta: float, length: int, intervals: int) -> tuple[int, int]:
    """p and q with floor(m·b·θ/2π) = floor(m·p/q) for 0 ≤ m < length, where q < length or q = 1."""
    scaled = Fraction(theta) * intervals / 2
    low, high = (_largest_fraction(scaled / pi, max(length - 1, 1)) for pi in (_PI_HIGH, _PI_LOW))
    if low != high:  # a boundary within 1e-100, which no float comes near below 2^60 positions
        raise ArithmeticError(
            f"π is not known well enough to place θ = {theta!r} at length {length}"
        )
    return low


def _largest_fraction(value: Fraction, limit: int) -> tuple[int, int]:
    """The largest p/q ≤ value with 1 ≤ q ≤ limit.

    It is the fraction nearest to the value or, where that is above, r/s, the next one below r/s in
    the Farey sequence: that with r·q − p·s = 1 and the largest q.
    """
    nearest = value.limit_denominator(limit)
    r, s = nearest.as_integer_ratio()
    if nearest <= value:
        return r, s
    q = limit - (limit - pow(r, -1, s)) % s
    return (r * q - 1) // s, q


def _floor_sum(n: int, modulus: np.ndarray, a: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Σ_{0≤m<n} floor((a·m + c) / modulus), for each c; a and modulus broadcast to it (a, c ≥ 0).

    Each round removes the whole parts of a and c, then swaps the roles of a and modulus, as
    Euclid's algorithm does (Graham, Knuth, Patashnik, *Concrete Mathematics*, section 3.5).
    """
    total = np.zeros_like(c)
    terms = np.full_like(total, n)
    while True:
        total += terms * (terms - 1) // 2 * (a // modulus) + terms * (c // modulus)
        a, c = a % modulus, c % modulus
        top = a * terms + c
        terms, c = top // modulus, top % modulus
        if not terms.any():
            return total
        # a is 0 only where no terms are left, and then adds nothing.
        modulus, a = np.maximum(a, 1), modulus
