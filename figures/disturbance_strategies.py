"""Appendix A.2 of the paper: the disturbance of interpolating and of extrapolating each pair, 8k and 16k."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from figures import common
from figures.disturbance import per_pair

NAMES = {"pi": "interpolation", "original": "extrapolation"}


def build(results: Path, scale: str) -> Figure:
    return per_pair(results, scale, NAMES)


if __name__ == "__main__":
    common.run("disturbance_strategies", __doc__, "llama2-7b", build)
