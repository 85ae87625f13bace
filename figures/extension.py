"""Loss against position without training: one line per method, the training length marked."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from experiments import scales
from figures import common
from tables.extension import comparison


def build(results: Path, scale: str) -> Figure:
    runs = comparison(results, scale)
    figure, axes = plt.subplots(figsize=(common.COLUMN, 2.6))
    for run in runs:
        buckets = run["buckets"]
        position = [(bucket["start"] + bucket["end"]) / 2 / 1024 for bucket in buckets]
        style = common.style(run)
        axes.plot(position, [bucket["mean"] for bucket in buckets], label=common.label(run), **style)
        low, high = ([bucket[end] for bucket in buckets] for end in ("low", "high"))
        axes.fill_between(position, low, high, color=style["color"], alpha=0.12, linewidth=0)
    trained = scales.get(scale).geometry.context_length / 1024
    axes.axvline(trained, color="black", linewidth=0.8, linestyle=":")
    axes.annotate(
        "L",
        (trained, 1),
        xytext=(2, -2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        fontsize=7,
    )
    axes.set_xlabel("position (1024 tokens)")
    axes.set_ylabel("loss (nats per token)")
    axes.set_xticks(np.arange(0, runs[0]["length"] / 1024 + 1, 2))
    axes.set_xlim(0, runs[0]["length"] / 1024)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


if __name__ == "__main__":
    common.run("extension", __doc__, "smollm2", build)
