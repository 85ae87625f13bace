"""The disturbance of a method at a longer context, per pair and averaged (the paper's Table 3 and Figures 7 and 8).

    python -m experiments.disturbance --model llama2-7b

It needs only the model's RoPE geometry, no weights. A record holds three ways of counting: the released code's
convention in its own float32 arithmetic, the same convention counted exactly, and equation (7).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from core import rope
from core.angles import angle_distribution
from core.disturbance import EPSILON, disturbance, select_interpolated
from core.released_code import angle_distribution_float32, inv_freq_float32
from experiments.kit import command_line
from experiments.kit.experiment import Experiment
from experiments.kit.base_model import BaseModel

INTERVALS = 360


class Disturbance(Experiment):
    __doc__ = __doc__
    name = "disturbance"
    weights = False

    @classmethod
    def main(cls) -> None:
        """Without --factor, at every factor of a known model."""
        given = cls.parse()
        known = BaseModel(given.model).model
        for factor in [given.factor] if given.factor else known.factors if known else [2]:
            cls(argparse.Namespace(**{**vars(given), "factor": factor})).run()

    @staticmethod
    def add_options(parser) -> None:
        parser.set_defaults(factor=None)

    def comparison(self) -> list[tuple[str, dict]]:
        """All methods whose frequencies follow from the geometry, of any model."""
        if self.arguments.method or self.base.model:
            return super().comparison()
        return [(name, {}) for name, method in rope.METHODS.items() if method.ready]

    def settings(self) -> dict:
        return {"geometry": vars(self.base.geometry), "intervals": INTERVALS}

    def samples(self) -> dict[str, tuple[str, str]]:
        """(precision, convention)"""
        return {f"{precision} {convention}": (precision, convention) for precision, convention in (
            ("float32", "released"), ("float64", "released"), ("float64", "equation"))}  # fmt: skip

    def measure(self, run: dict, keys: list[str]) -> Iterator[tuple[str, dict]]:
        for key in keys:
            yield key, self._measured(run["method"], run["options"], *self.content[key])

    def _measured(self, method: str, options: dict, precision: str, convention: str) -> dict:
        """The disturbance in nats, per pair and averaged, and how many dimensions are interpolated."""
        geometry, factor = self.base.geometry, self.factor
        released = precision == "float32"
        histogram, epsilon = (angle_distribution_float32, 0.0) if released else (angle_distribution, EPSILON)
        trained = inv_freq_float32(geometry) if released else geometry.inv_freq
        pretrained = histogram(trained, geometry.context_length)

        def moved(inv_freq: np.ndarray) -> np.ndarray:
            """The disturbance by these inverse frequencies; in float32 they are rounded as the released code does."""
            if released:
                inv_freq = trained / (geometry.inv_freq / inv_freq).astype(np.float32)
            return disturbance(histogram(inv_freq, self.extended_length), pretrained, convention, epsilon)

        if method == rope.PROPOSED:  # it chooses by the disturbances of this setting
            interpolated = geometry.inv_freq / factor
            interpolation, extrapolation = moved(interpolated), moved(geometry.inv_freq)
            chosen = select_interpolated(interpolation, extrapolation, **options)
            inv_freq = np.where(chosen, interpolated, geometry.inv_freq)
            per_pair = np.where(chosen, interpolation, extrapolation)
        else:
            takes = "convention" in rope.method_options(method)
            how = options | ({"convention": convention} if takes else {})
            inv_freq = rope.scale(geometry, method, factor, **how).inv_freq
            per_pair = moved(inv_freq)
        divisors = geometry.inv_freq / inv_freq
        return {"precision": precision, "convention": convention, "average": float(per_pair.mean()),
                "interpolated_dimensions": 2 * int(np.isclose(divisors, factor).sum()),
                "per_pair": per_pair.tolist()}  # fmt: skip

    def summary(self, run: dict, values: dict[str, dict]) -> dict:
        return {"scores": list(values.values())}


main = Disturbance.main

if __name__ == "__main__":
    command_line.run(main)
