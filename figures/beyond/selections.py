"""Disturbance against loss over dozens of selections of pairs.

Beyond the paper, without training. A point is one choice of the pairs to interpolate, with its 95 % interval. If less
disturbance extended a model better, the points would rise from the lower left to the upper right, and Spearman's ρ
would be near +1.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from analysis.results import Results
from figures.kit import style

TITLES = {"released": "released code: KL(P_L ‖ P_L')", "equation": "equation (7): KL(P_L' ‖ P_L)"}


def build(results: Results) -> Figure:
    """From the record of experiments.beyond.selections of the least factor: a point for each, a panel for each convention."""
    run = min(results.require("selections"), key=lambda record: record["factor"])
    figure, panels = plt.subplots(1, 2, figsize=(style.PAGE, 2.6), sharey=True)
    panels[0].set_ylabel("loss beyond L (nats per token)")
    rows = sorted(run["scores"], key=lambda row: len(row["interpolated_pairs"]))
    share = [2 * len(row["interpolated_pairs"]) for row in rows]
    losses = [row["beyond"]["mean"] for row in rows]
    spans = [[row["beyond"]["mean"] - row["beyond"]["low"] for row in rows],
             [row["beyond"]["high"] - row["beyond"]["mean"] for row in rows]]  # fmt: skip
    for axes, (convention, title) in zip(panels, TITLES.items()):
        moved = [1e3 * row["disturbance"][convention] for row in rows]
        axes.errorbar(moved, losses, yerr=spans, fmt="none", ecolor="0.8", linewidth=0.6, zorder=1)
        points = axes.scatter(moved, losses, c=share, cmap="viridis", s=14, zorder=2)
        for index, name in ((0, f"n̂ = {share[0]}"), (-1, f"n̂ = {share[-1]}"), (moved.index(min(moved)), "least")):
            axes.annotate(name, (moved[index], losses[index]), xytext=(4, 4), textcoords="offset points", fontsize=7)
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("disturbance, mean over pairs (10⁻³ nat)")
        axes.set_title(title, loc="left")
        found = run["spearman"][convention]
        text = f"Spearman ρ = {found['mean']:+.2f} [{found['low']:+.2f}, {found['high']:+.2f}]"
        axes.annotate(text, (0.02, 0.97), xycoords="axes fraction", va="top", fontsize=7)
    figure.colorbar(points, ax=panels, label="dimensions interpolated")
    return figure
