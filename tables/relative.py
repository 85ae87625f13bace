"""Which measure of disturbance orders the loss.

The paper's disturbance, or one that weighs distance by attention; over selections of pairs.
"""

from __future__ import annotations

from analysis import relative
from analysis.results import Results
from core.disturbance import CONVENTIONS
from tables.kit.model import Block, Table, score_block

_NAMES = {
    CONVENTIONS[0]: "the paper's, as its released code counts",
    CONVENTIONS[1]: "the paper's, as its equation 7 says",
    relative.SCALE_FREE: "relative, attention falling as 1/Δ",
    relative.MEASURED: "relative, measured attention",
}
_POSITIONS = {relative.BEYOND: "beyond L", relative.ALL: "all positions"}
CAPTION = (
    "A selection is a set of pairs to interpolate, such as that of each n̂; each was scored without training. ρ is "
    "Spearman's rank correlation of its disturbance, averaged over pairs, with its loss. That less disturbance "
    "means less loss needs ρ > 0. “Relative” is a disturbance of the rotation between two tokens, weighted by the "
    "attention at their distance. Brackets hold bootstrap 95 % intervals over selections and blocks of tokens."
)


def build(results: Results) -> Table:
    """From the records of experiments.selections and experiments.attention_distance: a block for each factor."""
    return Table("relative", CAPTION, tuple(_block(results, run) for run in results.require("selections")))


def _block(results: Results, run: dict) -> Block:
    rows: dict[str, dict] = {}
    for found in relative.correlations(results, run):
        rows.setdefault(_NAMES[found.measure], {})[_POSITIONS[found.positions]] = found.score
    title = f"{results.scale.title}, s = {run['factor']:g}, {len(run['scores'])} selections"
    named = list(_POSITIONS.values())
    return score_block(title, rows.items(), "Measure", digits=2, best=None, signed=named)
