"""Loss and disturbance over n̂.

Beyond the paper, without training, on one text. A point is DPRoPE at one n̂: it interpolates the n̂
dimensions that gain most by it, so each choice holds those to its left. Above: the loss beyond L.
Below: the disturbance, as the released code computes it. The least of each is marked; if less
disturbance extended a model better, both would be at one n̂.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from analysis.results import Results
from core import rope
from figures.kit import style


def build(results: Results) -> Figure:
    """From the record of selections of the least factor.

    Raises:
        NotMeasured: no record of selections by n̂.
    """
    run = min(results.require("selections"), key=lambda record: record["factor"])
    nested = {
        row["options"]["n_hat"]: row
        for row in run["scores"]
        if list(row.get("options", ())) == ["n_hat"]
    }
    if not nested:
        raise results.lacks("selection by n̂", "selections")
    shown = dict(sorted(nested.items()))
    figure, panels = plt.subplots(2, 1, figsize=(style.COLUMN, 3.4), sharex=True)
    colour, _ = rope.METHODS[rope.PROPOSED].styles[0]
    values = (
        [row["beyond"]["mean"] for row in shown.values()],
        [1e3 * row["disturbance"]["released"] for row in shown.values()],
    )
    for axes, drawn, form in zip(panels, values, (".3f", ".3g")):
        axes.plot(list(shown), drawn, color=colour, marker="o", markersize=2.5, linewidth=0.8)
        least, n_hat = min(zip(drawn, shown))
        axes.plot([n_hat], [least], color="black", marker="o", markersize=5, markerfacecolor="none")
        side = (
            {"xytext": (-3, -2), "ha": "right"}
            if n_hat > max(shown) / 2
            else {"xytext": (3, -2), "ha": "left"}
        )
        corner = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
            "va": "top",
            "fontsize": 7,
        }
        axes.annotate(f"least at n̂ = {n_hat}: {least:{form}}", (n_hat, 1), **corner, **side)
        for other in panels:
            other.axvline(n_hat, color="black", linewidth=0.6, linestyle=":", zorder=0)
    panels[0].set_ylabel("loss beyond L\n(nats per token)")
    panels[1].set_ylabel("disturbance\n(10⁻³ nat)")
    panels[1].set_yscale("log")
    panels[1].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panels[1].yaxis.set_major_formatter("{x:g}")
    panels[1].yaxis.set_minor_formatter(NullFormatter())
    panels[1].set_xlabel("n̂, dimensions interpolated")
    panels[0].set_title(
        f"{results.model.title}, s = {run['factor']:g}, {', '.join(run['data'])}", loc="left"
    )
    return figure
