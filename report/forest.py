"""Decided numbers as one line each of a forest plot: an interval on the axis that a finding's facts share (SVG)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.hypothesis_tests import Decision

WIDTH, HEIGHT = 180, 20  # CSS pixels
_MARGIN = 0.06  # of the range, at either end


def spans(decisions: Sequence[Decision]) -> tuple[float, float]:
    """The range that holds every interval, the paper's effects, and the finite edges of what is claimed."""
    values = [end for one in decisions for end in (one.interval.low, one.interval.high, one.estimate.mean)]
    values += [one.effect for one in decisions if one.effect is not None]
    values += [edge for one in decisions for edge in (one.region.low, one.region.high)]
    finite = [value for value in values if math.isfinite(value)]
    room = _MARGIN * (max(finite) - min(finite) or 1.0)
    return min(finite) - room, max(finite) + room


def line(decision: Decision, low: float, high: float) -> str:
    """A band where the claim says that the number lies, the interval, the number, and as a diamond the paper's own.

    The numbers stand beside it as text, so that it is hidden from those who listen.
    """

    def at(value: float) -> float:
        return round(WIDTH * (min(max(value, low), high) - low) / (high - low), 1)

    region, interval, middle = decision.region, decision.interval, HEIGHT / 2
    left, right = at(region.low), at(region.high)
    parts = [f'<rect class=region x="{left}" y="0" width="{max(right - left, 1):.1f}" height="{HEIGHT}"/>']
    edges = (edge for edge in (region.low, region.high) if math.isfinite(edge))
    parts += [f'<path class=edge d="M{at(edge)} 0V{HEIGHT}"/>' for edge in edges]
    parts.append(f'<path class=interval d="M{at(interval.low)} {middle}H{at(interval.high)}"/>')
    parts.append(f'<circle class=mean cx="{at(decision.estimate.mean)}" cy="{middle}" r="3.5"/>')
    if decision.effect is not None:
        parts.append(f'<path class=paper d="M{at(decision.effect)} {middle - 6}l5 6l-5 6l-5 -6z"/>')
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f"<svg {size} aria-hidden=true>{''.join(parts)}</svg>"
