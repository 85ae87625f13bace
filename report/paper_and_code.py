"""What equation (7) and the direction of the released code give at each ε."""

import numpy as np

from analysis import disturbance
from analysis.disturbance import Convention
from analysis.scores import number
from core import rope
from report.model_view import table

# The ε at which equation (7) is computed; the paper calls it "extremely small".
EPSILONS = {
    "10⁻³": 1e-3,
    "10⁻⁴": 1e-4,
    "10⁻⁵": 1e-5,
    "10⁻⁶": 1e-6,
    "10⁻⁷": 1e-7,
    "10⁻⁸": 1e-8,
}


def equation(epsilon: float) -> Convention:
    """Equation (7) with an ε, counted exactly."""
    return Convention("float64", "equation", epsilon)


def best_epsilon() -> float:
    """The ε within EPSILONS at which the furthest number of equation (7) is nearest."""
    grid = np.geomspace(1e-8, 1e-3, 51).tolist()
    return min(grid, key=lambda epsilon: max(disturbance.deviations(equation(epsilon))))


def by_epsilon() -> str:
    """Equation (7) at each ε, below the paper's numbers; by how much it and the released direction
    miss them."""
    printed = disturbance.recomputed(disturbance.EQUATION)
    names = [
        f"{rope.METHODS[setting.method].title}, s = {setting.factor:g}" for setting, _, _ in printed
    ]
    rows = [("the paper", *(number(value, 2) for _, value, _ in printed), "", "")]
    for title, epsilon in EPSILONS.items():
        missed = disturbance.deviations(equation(epsilon))
        released = disturbance.deviations(Convention("float64", "released", epsilon))
        off_by = f"{100 * min(missed):.0f} to {100 * max(missed):.0f} %"
        computed = disturbance.recomputed(equation(epsilon))
        numbers = (number(value, 2) for *_, value in computed)
        rows.append((title, *numbers, off_by, f"at most {100 * max(released):.1f} %"))
    return table(("ε", *names, "off by", "released code's direction"), rows)
