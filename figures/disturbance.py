"""Figure 8: disturbance per pair of PI, YaRN and DPRoPE.

A point is one pair, from the fastest on the left to the slowest on the right; the axis is logarithmic. The paper's
method takes, for each pair, the smaller disturbance of interpolation and extrapolation. Right of the dotted line a pair
does not complete a rotation within L.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from analysis.results import Results
from analysis.settings import Setting
from core import rope
from figures.kit.per_pair import draw


def build(results: Results) -> Figure:
    """The paper's three, and methods that were registered since."""
    ours = Setting(rope.PROPOSED).name
    names = {
        rope.TIME_REFERENCE: rope.METHODS[rope.TIME_REFERENCE].title,
        rope.BASELINE: rope.METHODS[rope.BASELINE].title,
        rope.PROPOSED: ours,
    }
    # And methods that were registered since.
    further = {
        name: m.title for name, m in rope.METHODS.items() if m.ready and not m.function.__module__.startswith("core.")
    }
    return draw(results, names | further)
