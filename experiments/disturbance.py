"""The averaged disturbance of every method at L' = s·L (the paper's Table 3), in a second.

    python -m experiments.disturbance --model llama2-7b
    python -m experiments.disturbance --model CHECKPOINT --method dprope yarn --factor 4

It follows from the model's RoPE geometry alone, so no weights are read and nothing is recorded.
Without --method, all methods whose frequencies follow from the geometry are compared; without
--factor, at each s of a base model. `python -m experiments.extend` shows single pairs.
"""

from __future__ import annotations

import csv

from core.disturbance import EPSILON
from experiments import base_models
from experiments.base_models import llama2
from experiments.base_models.model import Model
from experiments.kit import command_line, records
from experiments.kit.setting_disturbance import per_pair

LEGEND = f"""
n̂: dimensions whose inverse frequency is divided by s.
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
    model = model_of(arguments.model)
    geometry, printed = model.geometry, published() if model.geometry == llama2.GEOMETRY else {}
    scaled = "" if geometry.frequencies is None else f" (scaled before by {geometry.rope_type})"
    columns = ["n̂", "released", "equation 7", *(["float32", "paper"] if printed else [])]
    lines = [
        f"{model.title}: d = {geometry.head_dim}, base {geometry.base:g}{scaled}, L = "
        f"{geometry.context_length:,}. "
        f"Averaged disturbance in 10⁻³ nat, the mean over {geometry.pairs} pairs."
    ]
    for factor in [arguments.factor] if arguments.factor else model.factors:
        title = f"s = {factor:g}, L' = {round(geometry.context_length * factor):,}"
        lines += ["", " ".join([f"{title:28}", *(f"{name:>10}" for name in columns)])]
        for method, options in (
            command_line.chosen_methods(arguments) if arguments.method else model.comparison(factor)
        ):
            released, n_hat = per_pair(geometry, method, factor, options)
            averages = [
                released.mean(),
                per_pair(geometry, method, factor, options, convention="equation")[0].mean(),
            ]
            if not options and (method, factor) in printed:
                float32, _ = per_pair(geometry, method, factor, options, precision="float32")
                averages += [float32.mean(), printed[method, factor] / 1e3]
            name = " ".join([method, *(f"{option}={value}" for option, value in options.items())])
            lines.append(
                " ".join(
                    [f"{name:28} {n_hat:10}", *(f"{1e3 * average:10.2f}" for average in averages)]
                )
            )
    print(*lines, LEGEND + (COMPARED if printed else ""), sep="\n")


def model_of(name: str) -> Model:
    """A base model, or one's own as a model without settings; InputError if no method can extend
    it."""
    if name in base_models.MODELS:
        return base_models.MODELS[name]
    from experiments.kit.base_model import (
        BaseModel,
    )  # imports transformers, to read its configuration

    base = BaseModel(name)
    return Model(base.folder, name, base.geometry, factors=(2,))


def published() -> dict[tuple[str, float], float]:
    """The averaged disturbances of the paper's Table 3 in 10⁻³ nat, by method and factor."""
    with open(records.RESULTS / "paper" / "disturbance.csv", encoding="utf-8") as file:
        return {
            (row["method"], float(row["factor"])): float(row["disturbance_e3"])
            for row in csv.DictReader(file)
        }


if __name__ == "__main__":
    command_line.run(main)
