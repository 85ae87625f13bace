"""How often each interval of rotary angles occurs, before and after extension (the paper's Figures 1, 3 and 6).

    python -m experiments.angle_distribution --scale llama2-7b --factor 2

It needs only the model's RoPE geometry, no weights. The record holds exact counts for the chosen pairs: pre-trained at
L, interpolated and extrapolated at L'.
"""

from __future__ import annotations

import time

from core.angles import angle_counts
from core.errors import InputError
from experiments.kit import command_line, given_model, records

# The paper's "6th" and "22nd" dimension (0-based pair indices), and a pair whose wavelength exceeds L.
PAIRS = (6, 22, 50)


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.angle_distribution")
    given_model.add_arguments(parser, "llama2-7b")
    parser.add_argument(
        "--factor", type=command_line.number, default=2, metavar="S", help="scaling factor s = L'/L (default 2)"
    )
    parser.add_argument(
        "--pairs",
        type=command_line.none_or_more,
        nargs="+",
        metavar="I",
        help="0-based pair indices (default: those of the paper's figures that the model has)",
    )
    parser.add_argument(
        "--intervals",
        type=command_line.count,
        default=360,
        metavar="B",
        help="b, intervals of the histogram (default 360)",
    )
    command_line.add_records_arguments(parser)
    arguments = parser.parse_args()

    measured = given_model.Source(arguments.scale, arguments.model)
    geometry = measured.geometry
    chosen = arguments.pairs or [pair for pair in PAIRS if pair < geometry.pairs]
    for pair in chosen:
        if not 0 <= pair < geometry.pairs:
            raise InputError(f"there is no pair {pair}; {measured.scale} has pairs 0 to {geometry.pairs - 1}.")
    run = {
        "scale": measured.scale,
        "experiment": "angle_distribution",
        "factor": arguments.factor,
        "geometry": vars(geometry),
        "intervals": arguments.intervals,
        "pairs": chosen,
    }
    run["identity"] = records.identity(**run)
    file = records.path(arguments.results, measured.scale, "angle_distribution", f"s={arguments.factor:g}")
    if records.is_done(file, run, arguments.replace):
        print(f"done already: {file}")
        return
    records.state_scale(arguments.results, measured.scale, measured.facts(arguments.factor))
    started = time.perf_counter()
    inv_freq, length = geometry.inv_freq[run["pairs"]], geometry.context_length
    longer = round(length * arguments.factor)
    counts = {
        "pretrained": angle_counts(inv_freq, length, arguments.intervals),
        "interpolated": angle_counts(inv_freq / arguments.factor, longer, arguments.intervals),
        "extrapolated": angle_counts(inv_freq, longer, arguments.intervals),
    }
    scores = [
        {"pair": pair, "wavelength": float(geometry.wavelength[pair])}
        | {name: rows[row].tolist() for name, rows in counts.items()}
        for row, pair in enumerate(run["pairs"])
    ]
    print(records.write(file, run | {"scores": scores, "seconds": round(time.perf_counter() - started, 3)}))


if __name__ == "__main__":
    command_line.run(main)
