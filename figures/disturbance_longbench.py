"""The paper's figure of LongBench-E against growing disturbance: n̂ falls as t rises."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from core.disturbance import select_interpolated, strategy_disturbance
from experiments import scales
from figures import common
from tables import longbench
from tables.benchmarks import ablated


def build(results: Path, scale: str) -> Figure:
    """Score against disturbance, a point for each n̂ of the ablation; a panel without records says so."""
    figure, axes = plt.subplots(figsize=(common.COLUMN, 2.3))
    axes.set_xlabel("disturbance, mean over pairs (10⁻³ nat)")
    axes.set_ylabel("score, mean over tasks")
    blocks = list(ablated(results, scale, "longbench_e", longbench.scores, "n_hat"))
    if not blocks:
        axes.annotate("no record at this scale", (0.5, 0.5), xycoords="axes fraction", ha="center")
        return figure
    block = blocks[-1]  # fine-tuned where there is that
    preset = scales.get(scale)
    geometry, factor = preset.geometry, preset.factors[0]
    interpolation, extrapolation = strategy_disturbance(geometry.inv_freq, geometry.context_length, factor)
    for row in block.rows:
        chosen = select_interpolated(interpolation, extrapolation, n_hat=int(row.name))
        moved = 1e3 * (interpolation * chosen + extrapolation * ~chosen).mean()
        score = row.scores["Avg."]
        errors = [[score["mean"] - score["low"]], [score["high"] - score["mean"]]]
        axes.errorbar(moved, score["mean"], yerr=errors, color=common.STYLES["dprope"]["color"], marker="o", capsize=2)
        axes.annotate(f"n̂ = {row.name}", (moved, score["mean"]), xytext=(4, 3), textcoords="offset points", fontsize=7)
    axes.set_title(block.title.replace("$", ""), loc="left", fontsize=6.5)
    return figure


if __name__ == "__main__":
    common.run("disturbance_longbench", __doc__, "tiny", build)
