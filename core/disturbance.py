"""How far a longer context moves the rotary angle distributions (paper, section 3.2, equations
7-8).

Two conventions are in use and they do not agree:

- ``"released"``: KL(P_L ‖ P_L'), pre-trained first, as the authors' released code computes it.
  Summed over the intervals it reproduces the paper's disturbance table.
- ``"equation"``: KL(P_L' ‖ P_L), extended first, as equation (7) prints it. Intervals that only the
  longer context reaches are divided by ε, so its value depends strongly on ε.

Both are in nats, one value per dimension pair; the averaged disturbance D(P_L', P_L) is their mean
over pairs.
"""

import numpy as np
from numpy.typing import ArrayLike

from .angles import angle_distribution, real_array
from .errors import InputError, check_choice, check_number, check_whole
from .geometry import RopeGeometry

CONVENTIONS = ("released", "equation")
EPSILON = 1e-8


def disturbance(
    extended: ArrayLike,
    pretrained: ArrayLike,
    convention: str = "released",
    epsilon: float = EPSILON,
) -> np.ndarray:
    """The disturbance D^i(P_L', P_L) of each dimension pair, in nats.

    Args:
        extended: P_L' for the longer context, shape [pairs, intervals].
        pretrained: P_L for the pre-training length, same shape.
        convention: "released" for KL(P_L ‖ P_L'), "equation" for KL(P_L' ‖ P_L) (equation 7).
        epsilon: ε, added to both frequencies inside the logarithm, against division by zero.

    Returns:
        float64 array [pairs].

    Raises:
        InputError: an unknown convention, shapes that differ, a frequency that is negative or not
            finite, or a negative ε.
    """
    extended, pretrained = (real_array(x, "the distributions") for x in (extended, pretrained))
    if extended.shape != pretrained.shape or not extended.ndim:
        raise InputError(
            f"the distributions differ in shape ({extended.shape} and {pretrained.shape}); use "
            f"one b."
        )
    if (extended < 0).any() or (pretrained < 0).any():
        raise InputError(
            "a distribution holds a negative frequency; give distributions that core.angles "
            "computed."
        )
    check_number(epsilon, "ε", least=0)
    check_choice(convention, "convention", CONVENTIONS)
    first, second = (pretrained, extended) if convention == "released" else (extended, pretrained)
    with np.errstate(divide="ignore", invalid="ignore"):  # at ε = 0
        terms = first * np.log((first + epsilon) / (second + epsilon))
    return np.sum(np.where(first > 0, terms, 0.0), axis=-1)


def strategy_disturbance(
    inv_freq: ArrayLike,
    length: int,
    factor: float,
    intervals: int = 360,
    convention: str = "released",
) -> tuple[np.ndarray, np.ndarray]:
    """(D_I, D_E): the disturbance of each pair at L' = factor·L if it is interpolated by `factor`,
    and if θ_i is kept.

    Args:
        inv_freq: pre-trained θ_i in radians per position, shape [pairs].
        length: pre-training context length L.
        factor: s = L'/L > 1.
        intervals, convention: as in :func:`disturbance` and :func:`core.angles.angle_distribution`.

    Returns:
        two float64 arrays [pairs].
    """
    inv_freq = real_array(inv_freq, "the inverse frequencies")
    pretrained = angle_distribution(inv_freq, length, intervals)
    check_number(factor, "the scaling factor", least=1)
    longer = round(int(length) * factor)
    interpolated = angle_distribution(inv_freq / factor, longer, intervals)
    extrapolated = angle_distribution(inv_freq, longer, intervals)
    return (
        disturbance(interpolated, pretrained, convention),
        disturbance(extrapolated, pretrained, convention),
    )


def select_interpolated(
    interpolation: ArrayLike,
    extrapolation: ArrayLike,
    threshold: float = 0.0,
    n_hat: int | None = None,
) -> np.ndarray:
    """Which pairs to interpolate (equation 8): those with D_E > D_I + t, or the n̂/2 with the
    largest D_E − D_I.

    Args:
        interpolation: D_I, shape [pairs].
        extrapolation: D_E, shape [pairs].
        threshold: t, in nats; t = 0 takes the lesser disturbance of each pair.
        n_hat: n̂, the number of *dimensions* to interpolate, two per pair; cannot be combined with
            a threshold. Ties go to the pair of lower frequency.

    Returns:
        bool array [pairs], True where the pair is interpolated.

    Raises:
        InputError: n̂ is odd or outside 0 … 2·pairs, both n̂ and t are given, or an argument is not
            a number.
    """
    extrapolation, interpolation = (
        real_array(x, "the disturbances") for x in (extrapolation, interpolation)
    )
    if extrapolation.shape != interpolation.shape or extrapolation.ndim != 1:
        raise InputError(
            f"D_I and D_E have the shapes {interpolation.shape} and {extrapolation.shape}; give "
            "two arrays [pairs]."
        )
    margin = extrapolation - interpolation
    check_number(threshold, "the threshold t")
    if n_hat is None:
        return margin > threshold
    if threshold != 0.0:
        raise InputError("n̂ and a threshold t were both given; choose one.")
    dimensions = check_whole(n_hat, "n̂, a number of dimensions,", 0, 2 * margin.size)
    if dimensions % 2:
        raise InputError(
            f"n̂ is {n_hat}; it counts dimensions, two per pair, so give an even number."
        )
    kept = margin.size - dimensions // 2
    selected = np.zeros(margin.size, dtype=bool)
    selected[np.argsort(margin, kind="stable")[kept:]] = True
    return selected


# ---- the released code's histogram
#
# The authors' program (github.com/1180301012/DPRoPE) computes θ, positions and angles in float32,
# takes the angle modulo a float32 2π, and starts every count at the smallest normal float16.
# Rounding then moves positions across the intervals' boundaries. So use this only to reproduce the
# published table to the last digit, and :mod:`core.angles` for everything else.

MAX_LENGTH_FLOAT32 = 2**24  # float32 cannot represent every position beyond this
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


def angle_distribution_float32(inv_freq: np.ndarray, length: int) -> np.ndarray:
    """P_L^i with float32 rounding and the offset in every count: float32 array [pairs, 360].

    As in the released code, rows sum to slightly more than 1 and hold no zero, so use epsilon = 0
    with them.

    Raises:
        InputError: the length is out of range.
    """
    length = check_whole(length, "the context length in positions", 1, MAX_LENGTH_FLOAT32)
    intervals = 360
    angles = np.arange(length, dtype=np.float32) * np.asarray(inv_freq, dtype=np.float32)[:, None]
    interval = np.floor(
        np.float32(intervals / (2 * np.pi)) * np.mod(angles, np.float32(2 * np.pi))
    ).astype(np.int64)
    # Rounding can push an angle just below 2π into interval b, where the released code would fail.
    np.minimum(interval, intervals - 1, out=interval)
    counts = np.stack([np.bincount(row, minlength=intervals) for row in interval]).astype(
        np.float32
    )
    return (counts + COUNT_OFFSET) / np.float32(length)
