"""The disturbance of every method at a longer context, per pair and averaged (the paper's disturbance table).

    python -m experiments.disturbance --scale llama2-7b

It needs only the model's RoPE geometry, no weights. One record per factor holds three settings: the released code's
convention in its own float32 arithmetic, the same convention counted exactly, and equation (7).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from core import rope
from core.angles import angle_distribution
from core.disturbance import EPSILON, disturbance, select_interpolated
from core.geometry import RopeGeometry
from core.released_code import angle_distribution_float32, inv_freq_float32
from experiments.lab import cli, records, source

SETTINGS = (("float32", "released"), ("float64", "released"), ("float64", "equation"))


def main() -> None:
    parser = cli.parser(__doc__, prog="python -m experiments.disturbance")
    source.add_arguments(parser, "llama2-7b")
    parser.add_argument(
        "--factor",
        type=cli.number,
        nargs="+",
        metavar="S",
        help="scaling factors s = L'/L (default: every factor of the scale; with --model, 2)",
    )
    cli.add_records_arguments(parser)
    arguments = parser.parse_args()

    measured = source.Source(arguments.scale, arguments.model)
    factors = arguments.factor or (measured.preset.factors if measured.preset else (2,))
    for factor in factors:
        rope.scale(measured.geometry, rope.ORIGINAL, factor)  # refuses one that extends nothing
    for factor in factors:
        run = {
            "scale": measured.scale,
            "experiment": "disturbance",
            "factor": float(factor),
            "geometry": vars(measured.geometry),
            "intervals": 360,
            "n_hat": measured.n_hat(factor),
            "methods": [name for name, method in rope.METHODS.items() if method.ready],
        }
        run["identity"] = records.identity(**run)
        file = records.path(arguments.results, measured.scale, "disturbance", f"s={factor:g}")
        if records.is_done(file, run, arguments.replace):
            print(f"done already: {file}")
            continue
        records.state_scale(arguments.results, measured.scale, measured.facts(factor))
        started = time.perf_counter()
        rows = [row for setting in SETTINGS for row in measure(measured.geometry, factor, run["n_hat"], *setting)]
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
        """The disturbance when the inverse frequencies are divided by `by`, in the setting's own arithmetic."""
        extended = histogram(inv_freq / by.astype(inv_freq.dtype), round(geometry.context_length * factor))
        return disturbance(extended, pretrained, convention, epsilon)

    def strategy(method: str) -> np.ndarray:
        options = {"convention": convention} if "convention" in rope.method_options(method) else {}
        return geometry.inv_freq / rope.scale(geometry, method, factor, **options).inv_freq

    keep, divide = np.ones(geometry.pairs), np.full(geometry.pairs, factor)
    extrapolation, interpolation = moved(keep), moved(divide)
    scored = {}
    for name, method in rope.METHODS.items():
        if name == rope.OURS:  # it chooses by the disturbances of this setting
            for count in (None, n_hat) if n_hat else (None,):
                chosen = select_interpolated(interpolation, extrapolation, n_hat=count)
                scored[name, count] = (np.where(chosen, interpolation, extrapolation), np.where(chosen, divide, keep))
        elif method.ready:  # learned or given frequencies are not known from the geometry
            by = strategy(name)
            scored[name, None] = (moved(by), by)

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
