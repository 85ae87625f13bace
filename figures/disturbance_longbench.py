"""The paper's figure of LongBench-E against growing disturbance: n̂ falls as t rises."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from core.disturbance import select_interpolated, strategy_disturbance
from experiments import scales
from figures import common
from tables import longbench
from tables.benchmarks import ablated


def build(results: Path, scale: str) -> Figure:
    """Both against n̂, from most to fewest dimensions interpolated; a scale without records says so."""
    figure, axes = plt.subplots(figsize=(common.COLUMN, 2.5))
    axes.set_ylabel("score, mean over tasks")
    blocks = list(ablated(results, scale, "longbench_e", longbench.scores, "n_hat"))
    if not blocks:
        axes.annotate("no record at this scale", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return figure
    block = blocks[-1]  # fine-tuned where there is that
    preset = scales.get(scale)
    geometry, factor = preset.geometry, preset.factors[0]
    strategies = strategy_disturbance(geometry.inv_freq, geometry.context_length, factor)
    rows = sorted(block.rows, key=lambda row: -int(row.name))
    moved = [1e3 * float(np.where(select_interpolated(*strategies, n_hat=int(row.name)), *strategies).mean())
             for row in rows]  # fmt: skip
    found = [row.scores["Avg."] for row in rows]
    spans = [[score["mean"] - score["low"] for score in found], [score["high"] - score["mean"] for score in found]]
    score = common.STYLES["dprope"] | {"marker": "o", "markersize": 3}
    lines = [
        axes.errorbar(range(len(rows)), [s["mean"] for s in found], yerr=spans, capsize=2, elinewidth=0.8, **score)
    ]
    right = axes.twinx()
    lines += right.plot(range(len(rows)), moved, color="0.45", linestyle="--", marker="s", markersize=2.5)
    right.set_ylabel("disturbance (10⁻³ nat)")
    right.spines["right"].set_visible(True)
    right.grid(visible=False)
    axes.set_xticks(range(len(rows)), [row.name for row in rows])
    axes.set_xlabel("n̂, dimensions interpolated")
    axes.set_title(block.title.replace("$", "").replace(", measured", ",\nmeasured"), loc="left", fontsize=7)
    axes.set_ylim(0)
    right.set_ylim(0)
    axes.legend(lines, ["score", "disturbance"], loc="lower left")
    return figure


if __name__ == "__main__":
    common.run("disturbance_longbench", __doc__, "tiny", build)
