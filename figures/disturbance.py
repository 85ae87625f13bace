"""Figure 8: disturbance per pair of PI, YaRN and DPRoPE.

A point is one pair, from the fastest on the left to the slowest on the right; the axis is logarithmic. The paper's
method takes, for each pair, the smaller disturbance of interpolation and extrapolation. Right of the dotted line a pair
does not complete a rotation within L.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from analysis.disturbance import by_factor
from analysis.results import Results
from analysis.settings import Setting
from core import rope
from figures.kit.per_pair import draw


def build(results: Results) -> Figure:
    """From the records of experiments.disturbance: the paper's three, and methods that were registered since."""
    ours = Setting(rope.OURS).name
    names = {rope.UNIT: rope.METHODS[rope.UNIT].title, rope.RIVAL: rope.METHODS[rope.RIVAL].title, rope.OURS: ours}
    # The repository's own others are left out to keep the figure readable.
    left_out = {name for name, method in rope.METHODS.items() if method.function.__module__.startswith("core.")}
    recorded = dict.fromkeys(record["method"] for records in by_factor(results).values() for record in records)
    further = {name: Setting(name).name for name in recorded if name not in left_out}
    return draw(results, names | further)
