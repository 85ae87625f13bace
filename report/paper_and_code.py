"""What equation (7) and the direction of the released code give at each ε."""

import functools

import numpy as np

from analysis import published
from analysis.scores import number
from core import disturbance as kl
from core import rope
from core.angles import angle_distribution
from tables.kit.table import Block, Cell, Table

# The ε at which equation (7) is computed; the paper calls it "extremely small".
EPSILONS = tuple(10.0**-power for power in range(3, 9))


def recomputed(convention: str, epsilon: float) -> dict[tuple[str, float], float]:
    """The numbers of the paper's disturbance table, in 10⁻³ nat by method and factor, with an ε.

    DPRoPE's is the mean of each pair's lesser disturbance, by the same convention and ε (t = 0).
    """
    numbers = {}
    for method, factor in published.disturbance():
        pretrained, extended = _distributions(factor)
        moved = {
            name: kl.disturbance(each, pretrained, convention, epsilon)
            for name, each in extended.items()
        }
        moved[rope.PROPOSED] = np.minimum(moved[rope.TIME_REFERENCE], moved[rope.ORIGINAL])
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
    """Equation (7) at each ε, below the paper's numbers; by how much it and the released direction
    miss them."""
    printed = published.disturbance()
    keys = sorted(printed, key=lambda key: key[1])
    header = [f"{rope.METHODS[method].title}, s = {factor:g}" for method, factor in keys]

    def row(name: str, values: dict, *rest: str) -> tuple[Cell, ...]:
        return tuple(map(Cell, (name, *(number(values[key], 2) for key in keys), *rest)))

    rows = [row("the paper", printed, "", "")]
    for epsilon in EPSILONS:
        equation, released = (
            missed(convention, epsilon) for convention in ("equation", "released")
        )
        rows.append(
            row(
                f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[-round(np.log10(epsilon))]}",
                recomputed("equation", epsilon),
                f"{100 * min(equation):.0f} to {100 * max(equation):.0f} %",
                f"at most {100 * max(released):.1f} %",
            )
        )
    caption = "The paper's disturbances (10⁻³ nat) by equation (7), over ε."
    return Table(
        "epsilon",
        caption,
        (Block("", ("ε", *header, "off by", "released code's direction"), tuple(rows)),),
    )


@functools.cache
def _distributions(factor: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """P_L, and P_L' of PI, YaRN and the unscaled RoPE; arrays [pairs, intervals]."""
    geometry = published.GEOMETRY
    inv_freqs = {
        name: rope.scale(geometry, name, factor).inv_freq
        for name in (rope.TIME_REFERENCE, rope.BASELINE, rope.ORIGINAL)
    }
    longer = round(geometry.context_length * factor)
    pretrained = angle_distribution(geometry.inv_freq, geometry.context_length)
    return pretrained, {
        name: angle_distribution(inv_freq, longer) for name, inv_freq in inv_freqs.items()
    }
