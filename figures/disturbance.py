"""Figure 8: disturbance per pair of PI, YaRN and DPRoPE.

A point is one pair, from the fastest on the left to the slowest on the right; the axis is logarithmic. The paper's
method takes, for each pair, the smaller disturbance of interpolation and extrapolation. Right of the dotted line a pair
does not complete a rotation within L.
"""

from matplotlib.figure import Figure

from analysis.results import Results
from analysis.settings import Setting
from core import rope
from figures.kit.per_pair import draw


def build(results: Results) -> Figure:
    """The paper's three, and methods that were registered outside of core/."""
    names = {method: Setting(method).name for method in (rope.TIME_REFERENCE, rope.BASELINE, rope.PROPOSED)}
    for name, method in rope.METHODS.items():
        if method.ready and not method.function.__module__.startswith("core."):
            names[name] = method.title
    return draw(results, names)
