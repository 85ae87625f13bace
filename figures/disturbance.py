"""How far methods move angles, pair by pair, and what that does to a benchmark: Figures 5, 7, 8."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import metrics, published
from analysis.comparison import ablations, compared, own_methods
from analysis.disturbance import compute, factors
from analysis.results import Results
from analysis.scores import Score
from analysis.settings import lengths
from core import rope
from core.setting import Setting
from figures.kit import style
from figures.kit.style import MOST

FLOOR = 1e-5  # nats; smaller disturbances are drawn here
AVERAGE = "Avg."

Points = dict[Setting, tuple[float, Score]]  # disturbance in 10⁻³ nat, and what was measured


def disturbance_longbench_e(results: Results) -> Figure:
    """Figure 5: LongBench-E score against disturbance.

    If less disturbance extended a model better, points would fall from the upper left to the lower
    right. Left: what the paper prints of LLaMA2-13B, in its Tables 4 and 1, over disturbances that
    are computed here. Right: ours. Above: DPRoPE alone by n̂, which is the left end of the panel
    below it, enlarged.

    Raises:
        NotMeasured: no ablation over n̂ by LongBench-E, or one of some lengths alone.
    """
    title, ours = _measured_points(results)
    shown = {"LLaMA2-13B (the paper), fine-tuned, s = 2": _published_points(), title: ours}
    figure, panels = plt.subplots(2, 2, figsize=(style.PAGE, 4.8))
    for (above, below), (title, points) in zip(panels.T, shown.items()):
        by_n_hat = {setting: point for setting, point in points.items() if not setting.plain()}
        _draw_points(above, by_n_hat)
        _name_points(above, by_n_hat)
        _draw_points(below, points)
        above.set_title(f"{title}\nDPRoPE alone, enlarged, n̂ above each point")
        below.set(title="with other methods", xlabel="disturbance, mean over pairs (10⁻³ nat)")
    for axes in panels[:, 0]:
        axes.set_ylabel("LongBench-E score")
    style.one_legend(figure, panels[1], 4)
    style.note(
        figure,
        "Score: mean over tasks, more is better. Disturbance: less is what the paper aims at. "
        "Bars: 95 % intervals; the paper has none.",
    )
    return figure


def disturbance_strategies(results: Results) -> Figure:
    """Figure 7: disturbance of interpolating and of extrapolating each pair.

    The paper's method takes the lower point of each pair. Right of the dotted line a pair does not
    turn a full circle within L, and interpolation disturbs it far less.
    """
    names = {rope.TIME_REFERENCE: "interpolation", rope.ORIGINAL: "extrapolation"}
    return _by_pair(results, names)


def disturbance(results: Results) -> Figure:
    """Figure 8: disturbance of each pair, by method.

    DPRoPE, the broad line, takes for each pair the smaller disturbance of interpolation, which is
    PI, and of extrapolation. Right of the dotted line a pair does not turn a full circle within L,
    and the methods do the same. A user's own methods are drawn, too, up to four.
    """
    drawn = [
        method
        for method in (rope.PROPOSED, rope.TIME_REFERENCE, rope.BASELINE, *own_methods(results))
        if compute(results.geometry, Setting(method, (), factors(results)[0]))
    ]
    return _by_pair(results, {method: Setting(method).name for method in drawn[:MOST]})


def _measured_points(results: Results) -> tuple[str, Points]:
    """A title, and the model's points at one factor; fine-tuned where there is that."""
    lacks_ablation = results.lacks(
        "ablation over n̂ by longbench_e", "longbench_e", "--method dprope --n-hat N"
    )
    by_state = ablations(results, "longbench_e", "n_hat")
    if not by_state:
        raise lacks_ablation
    first = next(iter(by_state[-1].values()))
    factor = first.setting.factor
    points: Points = {}
    for row in compared(results, "longbench_e", first.trained, factor=factor).rows:
        setting = row.setting
        if setting.method == rope.ORIGINAL or not setting.plain("n_hat"):
            continue
        of_all = row.of_seeds(set(first.seeds))  # that every n̂ has
        moved = compute(results.geometry, setting)
        if not of_all.runs or moved is None:  # a learned one moves angles by no rule
            continue
        scores = of_all.scores(metrics.longbench_e)
        if AVERAGE not in scores:
            raise results.lacks(
                "average over all lengths of longbench_e", "longbench_e", "--limit all"
            )
        points[setting] = (moved.average, scores[AVERAGE])
    if all(setting.plain() for setting in points):  # the ablation has other options, too
        raise lacks_ablation
    benchmark = f", {first.first.benchmark}" if first.first.benchmark else ""
    return f"{results.title}{benchmark}, {first.state}, s = {factor:g}", points


def _published_points() -> Points:
    """The paper's scores on LLaMA2-13B at s = 2: its Table 4 over n̂, and its Table 1 for other
    methods."""
    main = published.rows("longbench_e")["LLaMA2-13B"]
    scores = {
        Setting(method, (), 2.0): main[f"{rope.METHODS[method].title} (s = 2)"]
        for method in (rope.TIME_REFERENCE, rope.BASELINE)
    }
    by_n_hat = published.rows("n_hat_longbench_e")["LLaMA2-13B"]
    scores |= {
        Setting(rope.PROPOSED, (("n_hat", int(n_hat)),), 2.0): score
        for n_hat, score in by_n_hat.items()
    }
    return {
        setting: (compute(published.GEOMETRY, setting).average, score[AVERAGE])
        for setting, score in scores.items()
    }


def _draw_points(axes: Axes, points: Points) -> None:
    """A point each with its interval, if it has one; every n̂ looks alike, and hides no other."""
    by_hand, _ = rope.METHODS[rope.PROPOSED].styles[1]
    looks = style.styles(setting for setting in points if setting.plain())
    for setting in sorted(points, key=Setting.plain):
        moved, score = points[setting]
        plain = setting.plain()
        colour = looks[setting][0] if plain else by_hand
        ends = None if score.low is None else [[score.mean - score.low], [score.high - score.mean]]
        axes.errorbar(
            [moved],
            [score.mean],
            ends,
            label=setting.name if plain else f"{rope.METHODS[rope.PROPOSED].title} (n̂)",
            color=colour,
            marker="D" if plain else "o",
            markersize=4 if plain else 3,
            markerfacecolor="none" if plain else by_hand,
            linestyle="none",
            elinewidth=0.4,
            capsize=1.5,
        )
    axes.margins(0.15)


def _name_points(axes: Axes, points: Points) -> None:
    """The n̂ of each point at the upper end of its panel."""
    order = sorted(points, key=lambda setting: points[setting][0])
    disturbances = [points[setting][0] for setting in order]
    first, last = disturbances[0], disturbances[-1]
    size = 0.075 * (last - first)
    places = style.apart(disturbances, [size] * len(order), last + size)
    axes.margins(y=0.3)
    for setting, moved, place in zip(order, disturbances, places):
        _, score = points[setting]
        axes.annotate(
            str(setting.option("n_hat")),
            (moved, score.mean if score.high is None else score.high),
            (place, 0.97),
            textcoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=6.5,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "shrinkB": 2},
        )


def _by_pair(results: Results, names: dict[str, str]) -> Figure:
    """Disturbance against pair index, one panel per factor, on a logarithmic axis; the line of the
    paper's own method is broad, below all others.

    Args:
        names: of the methods, by method.
    """
    geometry = results.geometry
    fast = int((geometry.wavelength <= geometry.context_length).sum())
    by_factor = factors(results)
    size = (style.COLUMN, 1.0 + 1.5 * len(by_factor))
    figure, rows = plt.subplots(len(by_factor), 1, figsize=size, sharex=True, squeeze=False)
    looks = style.styles(Setting(method) for method in names)
    broad = {"linewidth": 4, "alpha": 0.4, "solid_joinstyle": "round", "zorder": 1}
    marked = {"linewidth": 0.6, "ms": 2.8, "markerfacecolor": "none", "markeredgewidth": 0.6}
    for axes, factor in zip(rows[:, 0], by_factor):
        for (method, label), marker in zip(names.items(), "os^vD<>"):
            per_pair = compute(geometry, Setting(method, (), factor)).per_pair
            look = broad if method == rope.PROPOSED else marked | {"marker": marker}
            axes.plot(
                np.maximum(per_pair, FLOOR), color=looks[Setting(method)][0], label=label, **look
            )
        axes.set(
            title=f"s = {factor:g}: from L = {lengths(results, factor)} tokens",
            ylabel="disturbance (nat)",
            yscale="log",
            ylim=(FLOOR / 1.5, 30),
            yticks=np.logspace(-5, 0, 6),
            yticklabels=["≤10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "1"],
        )
        axes.yaxis.set_minor_locator(plt.NullLocator())
        axes.axvline(fast - 0.5, color="black", linewidth=0.6, linestyle=":")
        axes.annotate(
            "wavelength\n> L",
            (fast - 0.2, 1),
            xycoords=("data", "axes fraction"),
            va="top",
            fontsize=6.5,
        )
    axes.set_xlabel("pair index i (fast to slow)")
    style.one_legend(figure, rows[:, 0], 3)
    style.note(figure, "A mark is a pair. Less is what the paper aims at; the axis is logarithmic.")
    return figure
