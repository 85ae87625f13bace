"""Appendix A.2 of the paper: the disturbance of PI, YaRN and the paper's method per pair, 8k and 16k."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import records, scales
from figures import common

FLOOR = 1e-5  # nats; smaller disturbances are drawn here
NAMES = {"pi": "PI", "yarn": "YaRN", "dprope": "DPRoPE (t = 0)"}


def build(results: Path, scale: str) -> Figure:
    return per_pair(results, scale, NAMES)


def per_pair(results: Path, scale: str, names: dict[str, str]) -> Figure:
    """Disturbance against pair index for some methods, one panel per factor, on a logarithmic axis."""
    preset = scales.get(scale)
    runs = sorted(records.load(results, scale, "disturbance"), key=lambda record: record["factor"])
    figure, rows = plt.subplots(
        len(runs), 1, figsize=(common.COLUMN, 0.5 + 1.5 * len(runs)), sharex=True, squeeze=False
    )
    for axes, run in zip(rows[:, 0], runs):
        _panel(axes, run, names)
        axes.set_title(
            f"{round(preset.geometry.context_length * run['factor']) // 1024}k (s = {run['factor']:g})", loc="left"
        )
        axes.set_ylabel("disturbance (nat)")
        # Pairs from here on do not complete a rotation within L.
        slow = int((preset.geometry.wavelength <= preset.geometry.context_length).sum())
        axes.axvline(slow - 0.5, color="black", linewidth=0.6, linestyle=":")
        axes.annotate("λ > L", (slow - 0.1, 1), xycoords=("data", "axes fraction"), va="top", fontsize=7)
    rows[-1, 0].set_xlabel("pair index i (high to low frequency)")
    figure.legend(*rows[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(names))
    return figure


def _panel(axes: Axes, run: dict, names: dict[str, str]) -> None:
    scored = {
        row["method"]: row["per_pair"]
        for row in run["scores"]
        if (row["precision"], row["convention"]) == ("float64", "released") and not row["options"]
    }
    markers = dict(zip(names, ("o", "s", "D")))
    for method, label in names.items():
        values = [max(value, FLOOR) for value in scored[method]]
        style = common.STYLES[method]
        last = method == list(names)[-1]
        axes.plot(
            values,
            color=style["color"],
            linewidth=0.6,
            marker=markers[method],
            markersize=2.2 if last else 3.4,
            markerfacecolor=style["color"] if last else "none",
            markeredgewidth=0.7,
            label=label,
        )
    axes.set_yscale("log")
    axes.set_ylim(FLOOR / 1.5, 5)
    axes.set_yticks([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["≤10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"])
    axes.yaxis.set_minor_locator(plt.NullLocator())


if __name__ == "__main__":
    common.run("disturbance", __doc__, "llama2-7b", build)
