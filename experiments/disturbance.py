"""The averaged disturbance of every method at L' = s·L (the paper's Table 3), in a second.

    python -m experiments.disturbance --model llama2-7b
    python -m experiments.disturbance --model CHECKPOINT --method dprope yarn --factor 4

It follows from the model's RoPE geometry alone, so no weights are read and nothing is recorded.
Without --method, all methods whose frequencies follow from the geometry are compared; without
--factor, at each s of a base model. `python -m experiments.extend` shows single pairs.
"""

import csv
import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import records
from core import rope
from core.angles import angle_distribution
from core.disturbance import (
    EPSILON,
    angle_distribution_float32,
    disturbance,
    inv_freq_float32,
    select_interpolated,
)
from core.geometry import RopeGeometry
from core.setting import Setting
from experiments import base_models
from experiments.base_models import llama2
from experiments.kit import command_line


class Convention(NamedTuple):
    """How a disturbance is counted.

    Attributes:
        precision: "float64" counts exactly; "float32" as the released code does.
        direction: "released" for KL(P_L ‖ P_L'), "equation" for KL(P_L' ‖ P_L).
        epsilon: ε, which is added to both frequencies.
    """

    precision: str
    direction: str
    epsilon: float = EPSILON


FLOAT32 = Convention("float32", "released", epsilon=0.0)
FLOAT64 = Convention("float64", "released")
EQUATION = Convention("float64", "equation")


@dataclass(frozen=True)
class Disturbance:
    """A method's disturbance at L'.

    Attributes:
        per_pair: in nats, float64 [pairs].
        interpolated: the number of dimensions that are divided by s.
    """

    per_pair: np.ndarray
    interpolated: int

    @property
    def average(self) -> float:
        """The mean over pairs, in 10⁻³ nat."""
        return 1e3 * float(self.per_pair.mean())


def of_method(
    geometry: RopeGeometry,
    method: str,
    factor: float,
    options: dict,
    convention: Convention = FLOAT64,
) -> Disturbance:
    """The disturbance of a method at L' = s·L.

    A method that chooses by disturbances chooses by those that are counted in the same way.

    Args:
        options: the method's.

    Raises:
        InputError: there is no such method, or an option or the factor is out of range.
    """
    given = options
    if "convention" in rope.method_options(method):
        given = {"convention": convention.direction} | options
    scaling = rope.scale(geometry, method, factor, **given)
    of = functools.partial(_per_pair, geometry, round(geometry.context_length * factor), convention)
    inv_freq = scaling.inv_freq
    chosen = scaling.interpolated
    if method == rope.PROPOSED and options.keys() <= {"threshold", "n_hat"}:
        divided = geometry.inv_freq / factor
        chosen = select_interpolated(of(divided), of(geometry.inv_freq), **options)
        inv_freq = np.where(chosen, divided, geometry.inv_freq)
    return Disturbance(of(inv_freq), 2 * int(chosen.sum()))


def _per_pair(
    geometry: RopeGeometry, length: int, convention: Convention, inv_freq: np.ndarray
) -> np.ndarray:
    """The disturbance at `length` by these inverse frequencies, in nats [pairs]."""
    precision, direction, epsilon = convention
    trained = geometry.inv_freq
    count = angle_distribution
    if precision == "float32":
        # The released code rounds θ first, and then divides it.
        with np.errstate(divide="ignore"):  # a frequency of 0 is θ divided by infinity
            divisors = (trained / inv_freq).astype(np.float32)
        trained = inv_freq_float32(geometry)
        inv_freq = trained / divisors
        count = angle_distribution_float32
    pretrained = count(trained, geometry.context_length)
    return disturbance(count(inv_freq, length), pretrained, direction, epsilon)


LEGEND = f"""
divided: dimensions whose inverse frequency is divided by s.
released: KL(P_L ‖ P_L'), as the authors' released code has it; counted exactly, with
ε = {EPSILON:g}.
equation 7: KL(P_L' ‖ P_L), counted exactly, with the same ε."""
COMPARED = """
float32: as released, with that code's rounding and without ε; the paper's Table 3 agrees with it
to 0.5 %."""


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.disturbance")
    base_models.add_argument(parser)
    command_line.add_method_arguments(parser, several="all that need no training")
    parser.set_defaults(factor=None)
    arguments = parser.parse_args()
    command_line.check_method(arguments)
    model = base_models.MODELS.get(arguments.model)
    if model is None:
        from experiments.kit.model import resolve  # with torch, which base models do without

        model = resolve(arguments.model).settings(2)
    geometry = model.geometry
    printed = published() if geometry == llama2.GEOMETRY else {}
    scaled = "" if geometry.frequencies is None else f" (scaled before by {geometry.rope_type})"
    columns = {"released": FLOAT64, "equation 7": EQUATION}
    if printed:
        columns["float32"] = FLOAT32
    lines = [
        f"{model.title}: d = {geometry.head_dim}, base {geometry.base:g}{scaled}, L = "
        f"{geometry.context_length:,}. "
        f"Averaged disturbance in 10⁻³ nat, the mean over {geometry.pairs} pairs."
    ]
    for factor in [arguments.factor] if arguments.factor else model.factors:
        title = f"s = {factor:g}, L' = {round(geometry.context_length * factor):,}"
        rows = [["divided", *columns, "paper" if printed else "", title]]
        settings = model.comparison(factor)
        if arguments.method:
            settings = command_line.chosen_methods(arguments)
        for method, options in settings:
            name = Setting.make(method, options).typed
            counted = [
                of_method(geometry, method, factor, options, how) for how in columns.values()
            ]
            averages = [f"{each.average:8.2f}" for each in counted]
            paper = "" if options else printed.get((method, factor), "")
            rows.append([str(counted[0].interpolated), *averages, str(paper), name])
        lines += ["", *command_line.aligned(rows)]
    print(*lines, LEGEND + (COMPARED if printed else ""), sep="\n")


def published() -> dict[tuple[str, float], float]:
    """The averaged disturbances of the paper's Table 3 in 10⁻³ nat, by method and factor, the least
    factor first; none where they were not installed."""
    table = records.RESULTS / "paper/disturbance.csv"
    if not table.is_file():
        return {}
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return {
        (row["method"], float(row["factor"])): float(row["disturbance_e3"])
        for row in sorted(rows, key=lambda row: float(row["factor"]))
    }


if __name__ == "__main__":
    command_line.run(main)
