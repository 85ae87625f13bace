"""How often each interval of rotary angles occurs, before and after extension (the paper's Figures 1, 3 and 6).

    python -m experiments.angle_distribution --model llama2-7b --factor 2

It needs only the model's RoPE geometry, no weights. The record holds exact counts for the chosen pairs: pre-trained at
L, interpolated and extrapolated at L'.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.angles import angle_counts
from core.errors import InputError
from experiments.kit import command_line
from experiments.kit.command_line import count, none_or_more, option
from experiments.kit.experiment import Experiment

# The paper's "6th" and "22nd" dimension (0-based pair indices), and a pair whose wavelength exceeds L.
PAIRS = (6, 22, 50)


class AngleDistribution(Experiment):
    __doc__ = __doc__
    name = "angle_distribution"
    methods = None
    weights = False

    @staticmethod
    def add_options(parser) -> None:
        pairs = "0-based pair indices (default: those of the figures that the model has)"
        option(parser, "--pairs", none_or_more, "I", pairs, several=True)
        option(parser, "--intervals", count, "B", "b, intervals of the histogram", 360)

    def settings(self) -> dict:
        geometry = self.base.geometry
        pairs = self.arguments.pairs or [pair for pair in PAIRS if pair < geometry.pairs]
        for pair in pairs:
            if pair >= geometry.pairs:
                raise InputError(f"there is no pair {pair}; {self.base.name} has pairs 0 to {geometry.pairs - 1}.")
        return {"geometry": vars(geometry), "intervals": self.arguments.intervals, "pairs": pairs}

    def samples(self) -> dict[str, int]:
        return {f"pair {pair}": pair for pair in self.settings()["pairs"]}

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        geometry, b = self.base.geometry, self.arguments.intervals
        for key in keys:
            pair = self.content[key]
            inv_freq = geometry.inv_freq[[pair]]
            counts = {
                "pretrained": angle_counts(inv_freq, self.context_length, b),
                "interpolated": angle_counts(inv_freq / self.factor, self.extended_length, b),
                "extrapolated": angle_counts(inv_freq, self.extended_length, b),
            }
            row = {"pair": pair, "wavelength": float(geometry.wavelength[pair])}
            yield key, row | {name: rows[0].tolist() for name, rows in counts.items()}

    def summary(self, run: dict, values: dict[str, dict]) -> dict:
        return {"scores": list(values.values())}


main = AngleDistribution.main

if __name__ == "__main__":
    command_line.run(main)
