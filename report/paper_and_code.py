"""Where the paper and its released code differ, and what is done here; what equation (7) gives at each ε."""

from __future__ import annotations

import functools

import numpy as np

from analysis import published
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution
from tables.kit.table import Block, Cell, Table, number

_HEADER = ("", "the paper", "its released code", "here")
_ROWS = (
    (
        "direction of the KL divergence",
        "equation (7): KL(P_L' ‖ P_L)",
        "KL(P_L ‖ P_L')",
        "both; by default the code's, which the published table needs",
    ),
    (
        "ε, which keeps logarithms finite",
        "“extremely small”, added to frequencies",
        "6.1e-5, added to each count",
        "1e-8, added to frequencies; equation (7) depends strongly on it",
    ),
    (
        "arithmetic",
        "–",
        "float32 angles and positions",
        "exact integer counts, and float32 for comparison",
    ),
    (
        "averages",
        "sum over intervals, mean over pairs",
        "mean over intervals",
        "the paper's, which gives the published numbers",
    ),
    (
        "“Ours” in the disturbance table",
        "not said; its experiments use n̂ = 80 at s = 2 and 64 at s = 4 (section 4.1)",
        "the smaller disturbance of each pair (t = 0)",
        "both; the published table is that of t = 0, not of n̂ = 80 and 64",
    ),
    (
        "YaRN's ramp",
        "linear in the rotations r (equation 4)",
        "–",
        "both; by default the official ramp over the pair index, within 0.31 % of the published 25.55 and 35.44",
    ),
)

DIFFERENCES = Table(
    "differences",
    "Where the paper and its released code differ, and what is done here.",
    (Block("", _HEADER, tuple(tuple(map(Cell, row)) for row in _ROWS)),),
    words=True,
)

# The ε at which equation (7) is computed; the paper calls it "extremely small".
EPSILONS = tuple(10.0**-power for power in range(3, 9))


def recomputed(convention: str, epsilon: float) -> dict[tuple[str, float], float]:
    """The numbers of the paper's disturbance table, in 10⁻³ nat by method and factor, with an ε.

    DPRoPE's is the mean of each pair's lesser disturbance, by the same convention and ε (t = 0).
    """
    numbers = {}
    for method, factor in published.disturbance():
        pretrained, extended = _distributions(factor)
        moved = {name: kl.disturbance(each, pretrained, convention, epsilon) for name, each in extended.items()}
        moved[rope.OURS] = np.minimum(moved[rope.UNIT], moved[rope.ORIGINAL])
        numbers[method, factor] = 1e3 * float(moved[method].mean())
    return numbers


def missed(convention: str, epsilon: float) -> list[float]:
    """How far each recomputed number is from the printed one, as a share of that."""
    ours = recomputed(convention, epsilon)
    return [abs(ours[key] / printed - 1) for key, printed in published.disturbance().items()]


def best_epsilon() -> float:
    """The ε within EPSILONS at which the furthest number of equation (7) is nearest."""
    grid = np.geomspace(EPSILONS[-1], EPSILONS[0], 51).tolist()
    return min(grid, key=lambda epsilon: max(missed("equation", epsilon)))


def by_epsilon() -> Table:
    """Equation (7) at each ε, below the paper's numbers; by how much it and the released direction miss them."""
    printed = published.disturbance()
    keys = sorted(printed, key=lambda key: key[1])
    header = [f"{rope.METHODS[method].title}, s = {factor:g}" for method, factor in keys]

    def row(name: str, values: dict, *rest: str) -> tuple[Cell, ...]:
        return tuple(map(Cell, (name, *(number(values[key], 2) for key in keys), *rest)))

    rows = [row("the paper", printed, "", "")]
    for epsilon in EPSILONS:
        equation, released = (missed(convention, epsilon) for convention in ("equation", "released"))
        rows.append(
            row(
                f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[-round(np.log10(epsilon))]}",
                recomputed("equation", epsilon),
                f"{100 * min(equation):.0f} to {100 * max(equation):.0f} %",
                f"at most {100 * max(released):.1f} %",
            )
        )
    caption = "The paper's disturbances (10⁻³ nat) by equation (7), over ε."
    return Table("epsilon", caption, (Block("", ("ε", *header, "off by", "released code's direction"), tuple(rows)),))


@functools.cache
def _distributions(factor: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """P_L, and P_L' of PI, YaRN and the unscaled RoPE; arrays [pairs, intervals]."""
    geometry = published.GEOMETRY
    inv_freqs = {name: rope.scale(geometry, name, factor).inv_freq for name in (rope.UNIT, rope.RIVAL, rope.ORIGINAL)}
    longer = round(geometry.context_length * factor)
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length)
    return pretrained, {name: angle_distribution(inv_freq, longer) for name, inv_freq in inv_freqs.items()}
