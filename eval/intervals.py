"""Confidence intervals: by bootstrap, Wilson's where samples are few, and Student's over texts."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

LEAST_TEXTS = 5  # fewer are no sample of texts: each is printed
LEAST_FOR_MEDIAN = 6  # of fewer values the median lies outside their range in over 5 % of cases
RESAMPLES = 2000


def mean_interval(values: ArrayLike) -> dict:
    """The mean of independent values with a bootstrap 95 % interval (percentiles of 2000
    resamples).

    Returns:
        {"mean", "low", "high", "n"}; low and high equal the mean if there is only one value.
    """
    return mean_of_means([values])


def accuracy_interval(values: np.ndarray, weights: np.ndarray | None = None) -> dict:
    """The mean of independent scores between 0 and 1 with its Wilson 95 % interval; keys as
    :func:`mean_interval`.

    A bootstrap of a handful of equal outcomes has no width; Wilson's interval for 3 of 3 is 44 % to
    100 %.

    Args:
        values: [n].
        weights: [n], summing to 1; equal if not given. The scores may come from several
            populations. The interval is that of n = 1 / max(weights) zeros and ones. It is never
            too narrow, because with weights wᵢ and variances vᵢ the mean p has the variance Σ wᵢ²
            vᵢ ≤ max(w) Σ wᵢ vᵢ ≤ max(w) p(1 - p).
    """
    mean = float(np.average(values, weights=weights))
    z = ndtri(0.975)
    n = len(values) if weights is None else 1 / np.max(weights)
    shrunk = 1 + z**2 / n
    centre = (mean + z**2 / (2 * n)) / shrunk
    half = z * np.sqrt(max(mean * (1 - mean), 0) / n + (z / (2 * n)) ** 2) / shrunk
    # At 0 and 1 one end equals the mean; rounding must not move it past the mean.
    low = min(max(centre - half, 0), mean)
    high = max(min(centre + half, 1), mean)
    return {"mean": mean, "low": float(low), "high": float(high), "n": len(values)}


def resampled_ratio(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Σ sums / Σ counts, the mean of values in unequal groups, on resamples of the groups [n]:
    [RESAMPLES]."""
    drawn = np.random.default_rng(0).integers(0, len(sums), (RESAMPLES, len(sums)))
    return sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)


def resampled_interval(value: float, resampled: np.ndarray, n: int) -> dict:
    """A statistic of n samples with its 95 % interval, from its values on resamples [RESAMPLES]."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return {"mean": float(value), "low": float(low), "high": float(high), "n": n}


def mean_of_means(groups: Sequence[ArrayLike]) -> dict:
    """The mean of several groups' means, all of equal weight; each group is resampled by itself.

    Args:
        groups: the independent values of each group, [n_i].

    Returns:
        As :func:`mean_interval`; n counts all values.
    """
    samples = [np.asarray(group, dtype=np.float64) for group in groups]
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            np.mean([rng.choice(group, len(group)).mean() for group in samples])
            for _ in range(RESAMPLES)
        ]
    )
    mean = np.mean([group.mean() for group in samples])
    return resampled_interval(mean, resampled, sum(map(len, samples)))


def standard_error(values: np.ndarray) -> float:
    """Of the mean of independent values [n]."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def students_half(values: np.ndarray) -> float:
    """Half the width of Student's 95 % interval of the mean of values [n]."""
    return float(stdtrit(len(values) - 1, 0.975)) * standard_error(values)
