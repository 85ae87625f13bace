"""Figure 7: disturbance of interpolating and of extrapolating each pair.

A point is one pair, from the fastest on the left to the slowest on the right; the axis is
logarithmic. The paper's method takes the lower point of each pair. Right of the dotted line a pair
does not complete a rotation within L.
"""

from matplotlib.figure import Figure

from analysis.results import Results
from core import rope
from figures.kit.per_pair import draw


def build(results: Results) -> Figure:
    """Computed from the model's geometry."""
    return draw(results, {rope.TIME_REFERENCE: "interpolation", rope.ORIGINAL: "extrapolation"})
