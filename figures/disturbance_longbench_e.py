"""Figure 5: LongBench-E against disturbance.

If less disturbance extended a model better, points would fall from the upper left to the lower
right. Above: DPRoPE at the n̂ beside each point; n̂ falls as t rises. Below: the same beside other
methods. Left: what the paper prints of LLaMA2-13B, in its Tables 4 and 1, over disturbances that
are computed here. Right: ours, with 95 % intervals.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import disturbance, metrics, published
from analysis.comparison import ablations, compared
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import Setting
from core import rope
from figures.kit import style

AVERAGE = "Avg."


def build(results: Results) -> Figure:
    """The paper's points, and the model's at one factor; fine-tuned where there is that.

    Raises:
        NotMeasured: no ablation over n̂ by LongBench-E, or one of some lengths alone.
    """
    by_state = list(ablations(results, "longbench_e", "n_hat"))
    if not by_state:
        raise results.lacks(
            "ablation over n̂ by longbench_e", "longbench_e", "--method dprope --n-hat N"
        )
    state, varied = by_state[-1]
    first = next(iter(varied.values()))
    factor = first.setting.factor
    rows = [
        row
        for row in compared(results, "longbench_e", first.trained, factor=factor).rows
        if row.setting.plain("n_hat") and row.setting.method != rope.ORIGINAL
    ]
    rows = [
        row.of_seeds(set(first.seeds)) if first.seeds else row for row in rows
    ]  # those that every n̂ has
    scores = {row.setting: row.scores(metrics.longbench_e) for row in rows if row.runs}
    if any(AVERAGE not in of for of in scores.values()):
        raise results.lacks("average over all lengths of longbench_e", "longbench_e", "--limit all")
    ours = {}
    for setting, of in scores.items():
        if (
            computed := disturbance.compute(results.model.geometry, setting)
        ) is not None:  # a learned one has none
            ours[setting] = (computed.average, of[AVERAGE])

    figure, panels = plt.subplots(2, 2, figsize=(style.PAGE, 4.2))
    benchmark = f", {first.first.benchmark}" if first.first.benchmark else ""
    titles = (
        "LLaMA2-13B, fine-tuned, s = 2: the paper's",
        f"{results.model.title}{benchmark}, {state}, s = {factor:g}",
    )
    for (above, below), points, title in zip(panels.T, (published_points(), ours), titles):
        n_hats = {setting: point for setting, point in points.items() if not setting.plain()}
        _points(above, n_hats, {setting: str(setting.option("n_hat")) for setting in n_hats})
        least = min(n_hats, key=lambda setting: points[setting][1].mean)
        _points(
            below,
            points,
            {setting: setting.name for setting in points if setting.plain()}
            | {least: "DPRoPE (n̂)"},
        )
        above.set_title(title, loc="left")
        below.set_xlabel("disturbance, mean over pairs (10⁻³ nat)")
    for axes in panels[:, 0]:
        axes.set_ylabel("score, mean over tasks")
    return figure


def published_points() -> dict[Setting, tuple[float, Score]]:
    """The paper's scores on LLaMA2-13B at s = 2: its Table 4 over n̂, and its Table 1 for other
    methods."""
    table, ablated = (
        published.rows(name)["LLaMA2-13B"] for name in ("longbench_e", "n_hat_longbench_e")
    )
    scores = {
        Setting(name, (), 2.0): table[published.with_factor(rope.METHODS[name].title, name, 2.0)][
            AVERAGE
        ]
        for name in (rope.TIME_REFERENCE, rope.BASELINE)
    }
    for n_hat, row in ablated.items():
        scores[Setting(rope.PROPOSED, (("n_hat", int(n_hat)),), 2.0)] = row[AVERAGE]
    moved = {
        setting: disturbance.compute(published.GEOMETRY, setting).average for setting in scores
    }
    return {setting: (moved[setting], score) for setting, score in scores.items()}


def _points(
    axes: Axes, points: Mapping[Setting, tuple[float, Score]], names: Mapping[Setting, str]
) -> None:
    """A point each with its interval, if it has one; names do not hide each other."""
    drawn = style.styles(setting for setting in points if setting.plain())
    by_hand, _ = rope.METHODS[rope.PROPOSED].styles[1]
    colours = {setting: drawn[setting][0] if setting.plain() else by_hand for setting in points}
    for setting, (moved, score) in points.items():
        ends = None if score.low is None else [[score.mean - score.low], [score.high - score.mean]]
        look = {
            "marker": "o",
            "markersize": 3,
            "capsize": 1.5,
            "elinewidth": 0.4,
            "color": colours[setting],
        }
        axes.errorbar([moved], [score.mean], ends, **look)
    axes.margins(0.15)
    axes.autoscale_view()
    placed: list[tuple[float, float]] = []
    for setting in sorted(names, key=lambda setting: points[setting][1].mean):
        point = points[setting][0], points[setting][1].mean
        x, y = (axes.transScale + axes.transLimits).transform(point)
        near = [height for other, height in placed if abs(x - other) < 0.05 * len(names[setting])]
        while any(abs(y - height) < 0.09 for height in near):
            y += 0.01
        placed.append((x, y))
        line = {
            "arrowstyle": "-",
            "linewidth": 0.4,
            "color": colours[setting],
            "relpos": (0, 0.5),
            "shrinkA": 0,
        }
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
        look = {
            "va": "center",
            "fontsize": 6.5,
            "color": colours[setting],
            "arrowprops": line,
            "bbox": white,
        }
        axes.annotate(names[setting], point, (x + 0.03, y), textcoords="axes fraction", **look)
