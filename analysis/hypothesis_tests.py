"""Whether a measured number lies in a region: its interval, and Holm's correction.

A claim places a number in a region: above zero, below zero, or within a margin. It is reproduced if
the whole interval lies in the region, contradicted if the whole interval lies outside, and
undecided otherwise, so also if there is no interval. The p-value belongs to the region's nearer
edge, so it is at most α exactly if the interval at 1 - α contains no edge. If several numbers are
decided together, each is decided at Holm's level (Scand. J. Stat. 1979); their intervals stay those
of 95 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from analysis.scores import Score

REPRODUCED = "holds here"
CONTRADICTED = "does not hold here"
UNDECIDED = "not decided here"
LEVEL = 0.05


@dataclass(frozen=True)
class Region:
    """The region between two edges in which a claim places a number."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        low, high = (f"{edge:.4g}".replace("-", "−") for edge in (self.low, self.high))
        if math.isinf(self.low):
            return f"< {high}"
        return f"> {low}" if math.isinf(self.high) else f"{low} to {high}"

    def verdict(self, score: Score, level: float = LEVEL) -> str:
        """REPRODUCED, CONTRADICTED or UNDECIDED."""
        if self.p(score) > level:
            return UNDECIDED
        return REPRODUCED if self.low < score.mean < self.high else CONTRADICTED

    def p(self, score: Score) -> float:
        """The two-sided p-value of the nearer edge: the least level at which the interval contains
        no edge.

        It is 1 for a number that has no interval.
        """
        below, above = score.errors
        if not (below or above):
            return 1.0
        ends = ((score.mean - self.low, below, above), (self.high - score.mean, above, below))
        # If the mean lies beyond an edge, the interval's other end is nearer to that edge.
        far = min(_in_errors(abs(gap), toward if gap > 0 else away) for gap, toward, away in ends)
        return min(1.0, 2 * float(stdtr(score.freedom, -far)))

    def excess(self, score: Score) -> float:
        """How many times a margin the half-width of the 95 % interval is, at a difference of zero.

        Above 1, even a difference of zero would not be shown to lie within the margins. It is 0 if
        the region is none of two margins around zero.
        """
        if score.low is None or not -math.inf < self.low < 0 < self.high < math.inf:
            return 0.0
        return max((score.mean - score.low) / -self.low, (score.high - score.mean) / self.high)


ABOVE = Region(low=0.0)
BELOW = Region(high=0.0)


def _in_errors(gap: float, error: float) -> float:
    if error:
        return gap / error
    return math.inf if gap else 0.0


def holm(p_values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Holm's level for each of several p-values [n].

    In ascending order, the j-th p-value is compared with level / (n - j + 1). From the first one
    above its level on, all are compared with that same level.
    """
    order = np.argsort(p_values, kind="stable")
    n = len(p_values)
    steps = level / np.arange(n, 0, -1)
    failing = np.flatnonzero(p_values[order] > steps)
    last = failing[0] if len(failing) else n - 1
    levels = np.empty(n)
    levels[order] = steps[np.minimum(np.arange(n), last)]
    return levels
