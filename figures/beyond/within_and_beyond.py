"""Loss of each method minus YaRN's, within the context length and beyond it.

Beyond the paper, without training, at the least factor. A small point is a text, a bar the mean
over texts; left of zero is less loss than YaRN. What a method loses in both columns alike it loses
everywhere, not by extending. The axis is compressed away from zero.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.beyond import learned, loss_by_position
from analysis.comparison import Row
from analysis.results import Model, Results
from core import rope

BASELINE = rope.METHODS[rope.BASELINE].title
OWN, OTHER = "#D55E00", "#0072B2"
TICKS = (-0.05, 0, 0.05, 1)


def build(results: Results) -> Figure:
    """Two columns of points, the method with the least loss beyond L above."""
    for factor in loss_by_position.measured_factors(results):
        rows = loss_by_position.sampled(results, factor) or loss_by_position.untrained(
            results, factor
        )
        baseline, methods = rows.find(rope.BASELINE, {}), learned.methods(results, rows)
        if baseline and len(methods) > 1:
            break
    else:
        raise results.lacks(
            f"loss of a method beside {BASELINE}'s", "loss_by_position", "--method yarn pi"
        )
    methods.sort(key=lambda row: -loss_by_position.gap(row, baseline).mean)
    figure, columns = plt.subplots(
        1, 2, figsize=(4.8, 0.7 + 0.2 * len(methods)), sharex=True, sharey=True
    )
    for axes, where in zip(columns, (loss_by_position.WITHIN, loss_by_position.BEYOND)):
        for line, row in enumerate(methods):
            gap = loss_by_position.gap(row, baseline, where)
            colour = OWN if row.setting.method == rope.PROPOSED else OTHER
            axes.scatter(
                gap.texts, [line] * len(gap.texts), s=9, alpha=0.45, color=colour, linewidths=0
            )
            axes.plot([gap.mean] * 2, [line - 0.3, line + 0.3], color="black", linewidth=1.5)
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_title(where.replace("L", "its context"))
        axes.set_xscale("symlog", linthresh=0.05)
        axes.set_xticks(TICKS, [f"{tick:+g}".replace("-", "−") if tick else "0" for tick in TICKS])
        axes.xaxis.set_minor_locator(NullLocator())
    figure.supxlabel(f"loss minus {BASELINE}'s (nats per token)", fontsize=8)
    columns[0].set_yticks(range(len(methods)), [name(row, results.model) for row in methods])
    return figure


def name(row: Row, model: Model) -> str:
    """A method's name without symbols."""
    n_hat = row.setting.option("n_hat")
    if row.setting.method != rope.PROPOSED or not row.setting.plain("n_hat"):
        return row.setting.name
    words = {None: "least change", model.n_hat.get(row.setting.factor): "the paper's setting"}
    return (
        f"{rope.METHODS[rope.PROPOSED].title}, {words[n_hat]}"
        if n_hat in words
        else row.setting.name
    )
