"""Confidence intervals: bootstrap, and Wilson's where samples are few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import bootstrap, norm

RESAMPLES = 2000


def mean_interval(values: np.ndarray, seed: int = 0) -> dict:
    """The mean of independent values with a bootstrap 95 % interval (percentiles of 2000 resamples).

    Returns:
        {"mean", "low", "high", "n"}; low and high equal the mean where there is one value.
    """
    values = np.asarray(values, dtype=np.float64)
    mean = float(values.mean())
    low = high = mean
    if len(values) > 1:
        resampled = bootstrap((values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=seed)
        low, high = (float(x) for x in resampled.confidence_interval)
    return {"mean": mean, "low": low, "high": high, "n": len(values)}


def accuracy_interval(values: np.ndarray, weights: np.ndarray | None = None) -> dict:
    """The mean of independent scores between 0 and 1 with its Wilson 95 % interval; keys as :func:`mean_interval`.

    A bootstrap of a handful of equal outcomes has no width; Wilson's interval for 3 of 3 is 44 % to 100 %.

    Args:
        values: [n].
        weights: [n], their sum 1; equal if not given. The scores may come from several populations. The interval is that
            of n = 1 / max(weights) zeros and ones: with weights wᵢ and variances vᵢ the mean p has the variance
            Σ wᵢ² vᵢ ≤ max(w) Σ wᵢ vᵢ ≤ max(w) p(1 - p), so it is never too narrow for the rest.
    """
    mean, z = float(np.average(values, weights=weights)), norm.ppf(0.975)
    n = len(values) if weights is None else 1 / np.max(weights)
    centre = (mean + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(max(mean * (1 - mean), 0) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    # At 0 and 1 one end is the mean itself, which rounding must not pass.
    low, high = min(max(centre - half, 0), mean), max(min(centre + half, 1), mean)
    return {"mean": mean, "low": float(low), "high": float(high), "n": len(values)}


def resampled_ratio(sums: np.ndarray, counts: np.ndarray, seed: int = 0) -> np.ndarray:
    """Σ sums / Σ counts on resamples of the pairs [n]: [RESAMPLES]. The mean of values that come in unequal groups."""
    drawn = np.random.default_rng(seed).integers(0, len(sums), (RESAMPLES, len(sums)))
    return sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)


def resampled_interval(value: float, resampled: np.ndarray, n: int) -> dict:
    """Any statistic of n samples with its 95 % interval, from its values on resamples [RESAMPLES]."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return {"mean": float(value), "low": float(low), "high": float(high), "n": n}


def mean_of_means(groups: Sequence[np.ndarray], seed: int = 0) -> dict:
    """The mean of several samples' means, every sample weighing the same; each is resampled by itself.

    Args:
        groups: independent values of each sample, [n_i].

    Returns:
        As :func:`mean_interval`; n counts all values.
    """
    rng = np.random.default_rng(seed)
    resampled = [np.mean([rng.choice(group, len(group)).mean() for group in groups]) for _ in range(RESAMPLES)]
    mean = np.mean([np.mean(group) for group in groups])
    return resampled_interval(mean, np.array(resampled), sum(len(group) for group in groups))
