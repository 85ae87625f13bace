"""Figure 8: disturbance per pair of PI, YaRN and DPRoPE.

A point is one pair, from the fastest on the left to the slowest on the right; the axis is
logarithmic. The paper's method takes, for each pair, the smaller disturbance of interpolation and
extrapolation. Right of the dotted line a pair does not complete a rotation within L.
"""

from matplotlib.figure import Figure

from analysis.results import Results
from analysis.settings import Setting
from core import rope
from figures.kit.per_pair import draw


def build(results: Results) -> Figure:
    """Computed from the model's geometry."""
    methods = rope.TIME_REFERENCE, rope.BASELINE, rope.PROPOSED
    return draw(results, {method: Setting(method).name for method in methods})
