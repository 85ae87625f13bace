"""How the rotary angles of a pair are distributed before and after extension (the paper's Figures 1, 3 and 6).

    python -m experiments.angle_distribution --model llama2-7b --factor 2 --pairs 6 22

It follows from the model's RoPE geometry alone, so no weights are read and nothing is recorded.
`make fig_angle_distribution` draws the histograms.
"""

from __future__ import annotations

import numpy as np

from core.angles import angle_counts
from core.errors import InputError
from experiments import base_models
from experiments.disturbance import model_of
from experiments.kit import command_line
from experiments.kit.command_line import count, none_or_more, option

# The paper's "6th" and "22nd" dimension (0-based pair indices), and a pair whose wavelength exceeds L.
PAIRS = (6, 22, 50)


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m experiments.angle_distribution")
    base_models.add_argument(parser)
    command_line.add_factor_argument(parser)
    pairs = f"0-based pair indices (default: those of {', '.join(map(str, PAIRS))} that the model has)"
    option(parser, "--pairs", none_or_more, "I", pairs, several=True)
    option(parser, "--intervals", count, "B", "b, intervals of the histogram", 360)
    arguments = parser.parse_args()
    model, b = model_of(arguments.model), arguments.intervals
    geometry, factor = model.geometry, arguments.factor
    chosen = arguments.pairs or [pair for pair in PAIRS if pair < geometry.pairs]
    if wrong := [pair for pair in chosen if pair >= geometry.pairs]:
        raise InputError(f"there is no pair {wrong[0]}; {arguments.model} has pairs 0 to {geometry.pairs - 1}.")
    length, longer = geometry.context_length, round(geometry.context_length * factor)
    theta = geometry.inv_freq[chosen]
    cases = {
        "pre-trained": angle_counts(theta, length, b),
        "interpolated": angle_counts(theta / factor, longer, b),
        "extrapolated": angle_counts(theta, longer, b),
    }
    print(
        f"{model.title}: L = {length:,} tokens, s = {factor:g}, L' = {longer:,}, b = {b} intervals of [0, 2π).\n"
        "Each case: the intervals that angles reach, and the share of positions in the fullest interval.\n\n"
        f"pair  wavelength (tokens)  {'':2}{'  '.join(f'{name:>20}' for name in cases)}"
    )
    for i, pair in enumerate(chosen):
        shares = [
            f"{np.count_nonzero(counts[i])}, {counts[i].max() / counts[i].sum():.2%}" for counts in cases.values()
        ]
        print(f"{pair:4}  {geometry.wavelength[pair]:19,.1f}  {'':2}{'  '.join(f'{share:>20}' for share in shares)}")


if __name__ == "__main__":
    command_line.run(main)
