"""Extend a model of your own, without training, and export it as a stock Hugging Face checkpoint.

    python -m experiments.extend --model PATH_OR_NAME --method dprope --factor 2 --output DIR

prints what was decided for every dimension pair (its wavelength in tokens, the disturbance D_I that
interpolating it by s would cause, the disturbance D_E of keeping it, both in units of 0.001 nat) and the averaged
disturbance. Plain AutoModelForCausalLM.from_pretrained(DIR) loads the result. Without --output nothing is
written and no weights are read.
"""

from __future__ import annotations

import numpy as np

from core import rope
from core.angles import angle_distribution
from core.disturbance import disturbance, strategy_disturbance
from core.embedding import config_geometry
from core.extend import check_new_directory, export, extend
from core.rope import RopeGeometry, RopeScaling, scale
from experiments.lab import cli, models, scales


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.extend")
    parser.add_argument(
        "--model",
        required=True,
        metavar="PATH_OR_NAME",
        help=f"a checkpoint's directory, a name on the hub, or one of {', '.join(scales.SCALES)}",
    )
    cli.add_method_arguments(parser, method=rope.OURS)
    parser.add_argument(
        "--output", type=cli.directory, metavar="DIR", help="where to export the extended model; must be new"
    )
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32", help="of the export")
    arguments = parser.parse_args()

    if arguments.output:
        check_new_directory(arguments.output)
    options = cli.method_options(arguments)
    geometry = config_geometry(models.check_config(arguments.model))
    scaling = scale(geometry, arguments.method, arguments.factor, **options)
    settings = {"intervals": arguments.intervals or 360, "convention": arguments.convention or "released"}
    print(decision_table(geometry, scaling, arguments.factor, **settings))
    if arguments.output:
        loaded = models.load(arguments.model, arguments.dtype)
        model = extend(loaded.model, arguments.method, arguments.factor, **options)
        print(f"\nwritten: {export(model, arguments.output, loaded.tokenizer)}")


def decision_table(
    geometry: RopeGeometry, scaling: RopeScaling, factor: float, intervals: int = 360, convention: str = "released"
) -> str:
    """The per-pair decision and the averaged disturbance, as text for a terminal."""
    length, longer = geometry.context_length, round(geometry.context_length * factor)
    interpolation, extrapolation = strategy_disturbance(geometry.inv_freq, length, factor, intervals, convention)
    result = disturbance(
        angle_distribution(scaling.inv_freq, longer, intervals),
        angle_distribution(geometry.inv_freq, length, intervals),
        convention,
    )
    lines = [f"{'pair':>4}  {'wavelength':>12}  {'D_I':>10}  {'D_E':>10}  choice"]
    for i in range(geometry.pairs):
        lines.append(
            f"{i:>4}  {geometry.wavelength[i]:>12,.1f}  {interpolation[i] * 1e3:>10.4f}  "
            f"{extrapolation[i] * 1e3:>10.4f}  {_choice(geometry.inv_freq[i] / scaling.inv_freq[i], factor)}"
        )
    count = 2 * int(np.sum(scaling.interpolated))
    averages = {"interpolating all": interpolation.mean(), "extrapolating all": extrapolation.mean()}
    lines.append(
        f"\ncontext {length:,} → {longer:,} tokens (s = {factor:g}), "
        f"{count} of {geometry.head_dim} dimensions interpolated (n̂ = {count})"
    )
    lines.append(
        f"averaged disturbance ({convention} convention, 10^-3 nat): {result.mean() * 1e3:.2f} "
        f"({', '.join(f'{name}: {value * 1e3:.2f}' for name, value in averages.items())})"
    )
    return "\n".join(lines)


def _choice(divisor: float, factor: float) -> str:
    if np.isclose(divisor, 1):
        return "keep"
    return "interpolate" if np.isclose(divisor, factor) else f"divide by {divisor:.3f}"


if __name__ == "__main__":
    cli.run(main)
