"""The disturbance of every method at a longer context, per pair and averaged (the paper's disturbance table).

Needs the model's RoPE geometry only, no weights. One record per factor holds three settings: the released
convention in the released code's float32 arithmetic, the same counted exactly, and equation (7).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from core.angles import angle_distribution
from core.disturbance import EPSILON, disturbance, select_interpolated
from core.released import angle_distribution_float32, inv_freq_float32
from core.rope import RopeGeometry, scale
from experiments import cli, records, scales

SETTINGS = (("float32", "released"), ("float64", "released"), ("float64", "equation"))


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.disturbance")
    parser.add_argument("--scale", default="llama2-7b", help=f"one of {', '.join(scales.SCALES)} (default llama2-7b)")
    parser.add_argument("--factor", type=float, nargs="+", metavar="S", help="default: every factor of the scale")
    cli.add_results_argument(parser)
    arguments = parser.parse_args()

    preset = scales.get(arguments.scale)
    for factor in arguments.factor or preset.factors:
        run = {
            "scale": arguments.scale,
            "experiment": "disturbance",
            "factor": float(factor),
            "geometry": vars(preset.geometry),
            "intervals": 360,
            "n_hat": preset.n_hat.get(factor),
        }
        run["identity"] = records.identity(**run)
        file = records.path(arguments.results, arguments.scale, "disturbance", f"s={factor:g}")
        if records.is_done(file, run["identity"]):
            print(f"done already: {file}")
            continue
        started = time.perf_counter()
        rows = [row for setting in SETTINGS for row in measure(preset.geometry, factor, run["n_hat"], *setting)]
        print(records.write(file, run | {"scores": rows, "seconds": round(time.perf_counter() - started, 3)}))


def measure(
    geometry: RopeGeometry, factor: float, n_hat: int | None, precision: str, convention: str
) -> Iterator[dict]:
    """One row per method: its disturbance in nats, per pair and averaged, and how many dimensions it interpolates."""
    if precision == "float32":
        histogram, inv_freq, epsilon = angle_distribution_float32, inv_freq_float32(geometry), 0.0
    else:
        histogram, inv_freq, epsilon = angle_distribution, geometry.inv_freq, EPSILON
    pretrained = histogram(inv_freq, geometry.context_length)

    def moved(by: np.ndarray) -> np.ndarray:
        """The disturbance once the inverse frequencies are divided by `by`, in the setting's own arithmetic."""
        extended = histogram(inv_freq / by.astype(inv_freq.dtype), round(geometry.context_length * factor))
        return disturbance(extended, pretrained, convention, epsilon)

    divisors = {}
    for method in ("original", "pi", "ntk", "yarn"):
        divisors[method] = geometry.inv_freq / scale(geometry, method, factor).inv_freq
    scored = {(method, None): (moved(by), by) for method, by in divisors.items()}
    interpolation, extrapolation = scored["pi", None][0], scored["original", None][0]
    for count in (None, n_hat) if n_hat else (None,):
        chosen = select_interpolated(interpolation, extrapolation, n_hat=count)
        scored["dprope", count] = (np.where(chosen, interpolation, extrapolation), np.where(chosen, factor, 1.0))
    chosen = scale(geometry, "dprope-significant", factor, convention=convention).interpolated
    scored["dprope-significant", None] = (
        np.where(chosen, interpolation, extrapolation),
        np.where(chosen, factor, 1.0),
    )

    for (method, count), (per_pair, by) in scored.items():
        yield {
            "precision": precision,
            "convention": convention,
            "method": method,
            "options": {} if count is None else {"n_hat": count},
            "average": float(per_pair.mean()),
            "interpolated_dimensions": 2 * int(np.isclose(by, factor).sum()),
            "per_pair": per_pair.tolist(),
        }


if __name__ == "__main__":
    cli.run(main)
