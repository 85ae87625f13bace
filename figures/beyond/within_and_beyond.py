"""README's methods side by side."""

import itertools
from collections import Counter
from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.beyond import loss_by_position
from analysis.beyond.loss_by_position import BEYOND, WITHIN
from analysis.comparison import Comparison, compared, comparisons, largest, own_methods
from analysis.results import Results
from analysis.scores import Score, number
from analysis.settings import BASELINE, lengths
from core import rope
from core.setting import Setting, tokens
from figures.beyond import curves
from figures.kit import style

SIDES = (WITHIN, BEYOND)
OWN = rope.METHODS[rope.PROPOSED].title
# the paper's method; others
ORANGE = "#D55E00"
BLUE = "#0072B2"
UNTRAINED = "untrained"
MARKS = ("o", "D", "s", "p")  # of the untrained settings, then of each round of fine-tunes

Gaps = dict[str, dict[str, Score]]  # by a method's name in the figure, by one of SIDES


def within_and_beyond(results: Results) -> Figure:
    """Loss of each method minus YaRN's, within the context length and beyond it.

    Beyond the paper. Untrained methods are compared with untrained YaRN, and fine-tuned ones with
    fine-tuned YaRN, on the same texts. What a method loses in both columns alike it loses
    everywhere, not by extending.

    A line for each method of README's table, at the least factor that has two of them.

    Raises:
        NotMeasured: there is no record of one of them beside the baseline's.
    """
    for factor in loss_by_position.measured_factors(results):
        shown = settings(results, factor)
        samples = loss_by_position.samples(results, factor, trained=False)
        untrained = largest(samples) or compared(results, "loss_by_position", False, factor)
        gaps = _gaps(untrained, shown)
        if len(gaps) > 1:
            rounds = _fine_tuned(results, factor, untrained)
            by_state = {UNTRAINED: gaps}
            by_state |= {state: _gaps(rows, shown) for state, rows in rounds.items()}
            papers = {name for name, (method, _) in shown.items() if method == rope.PROPOSED}
            return _figure(by_state, shown, _titles(results, factor), papers)
    raise results.lacks(
        f"loss of a method beside {BASELINE}'s", "loss_by_position", "--method yarn pi"
    )


def settings(results: Results, factor: float) -> dict[str, tuple[str, dict]]:
    """The methods of README's table and a user's own, each a method and its options, by their names
    there."""
    names = "longrope2", rope.BASELINE, "dprope-covered", rope.PROPOSED
    shown: list[tuple[str, dict]] = [(name, {}) for name in names]
    if n_hat := results.n_hat.get(factor):
        shown.insert(3, (rope.PROPOSED, {"n_hat": n_hat}))
    shown += [(name, {}) for name in own_methods(results)]
    shown += [(rope.TIME_REFERENCE, {}), (rope.ORIGINAL, {})]
    return {Setting(name, tuple(options.items())).name: (name, options) for name, options in shown}


def _fine_tuned(results: Results, factor: float, untrained: Comparison) -> dict[str, Comparison]:
    """The fine-tuned settings on the texts of the untrained ones, by how they were trained."""
    rounds: dict[str, Comparison] = {}
    seen: Counter[str] = Counter()
    for rows in comparisons(results, "loss_by_position", True, factor):
        if rows.first.alike == untrained.first.alike and rows.find(rope.BASELINE, {}):
            name = curves.state(rows)
            seen[name] += 1
            rounds[f"{name} ({seen[name]})" if seen[name] > 1 else name] = rows
    return dict(sorted(rounds.items()))


def _gaps(rows: Comparison, shown: dict[str, tuple[str, dict]]) -> Gaps:
    """Of the settings that there are, trained as long as the baseline, the loss minus the
    baseline's, which is one of them."""
    baseline = rows.find(rope.BASELINE, {})
    if baseline is None:
        return {}
    found = {name: rows.find(method, options) for name, (method, options) in shown.items()}
    return {
        name: {where: loss_by_position.gap(row, baseline, where) for where in SIDES}
        for name, row in found.items()
        if row and row.steps == baseline.steps
    }


def _titles(results: Results, factor: float) -> dict[str, str]:
    """What the columns show, by SIDES."""
    return {
        WITHIN: f"within L (the first {tokens(results.context_length)} tokens)",
        BEYOND: f"beyond L ({lengths(results, factor)} tokens, s = {factor:g})",
    }


def _figure(
    by_state: dict[str, Gaps], order: Iterable[str], titles: dict[str, str], papers: set[str]
) -> Figure:
    """Two columns, the untrained mark of a line above its fine-tuned ones; `papers` are the names
    of the paper's method."""
    there = {name for gaps in by_state.values() for name in gaps}
    names = [name for name in order if name in there]
    marks = dict(zip((state for state, gaps in by_state.items() if gaps), itertools.cycle(MARKS)))
    scores = [score for gaps in by_state.values() for of in gaps.values() for score in of.values()]
    edge = curves.axis_end(gap.mean for of in by_state[UNTRAINED].values() for gap in of.values())
    near = [score for score in scores if abs(score.mean) <= edge and score.low is not None]
    edge = max([edge, *(max(-score.low, score.high) for score in near)])  # no interval is cut
    least = min(min(*score.texts, score.low or 0) for score in scores)
    height = 1.5 + (0.1 + 0.12 * len(marks)) * len(names)
    figure, columns = plt.subplots(1, 2, figsize=(style.PAGE, height), sharex=True, sharey=True)
    for axes, (where, title) in zip(columns, titles.items()):
        axes.set_title(title, loc="center")
        axes.set_xlabel(f"loss minus {BASELINE}'s (nats per token)")
        axes.axvline(0, color="black", linewidth=0.6)
        for line in range(len(names) - 1):
            axes.axhline(line + 0.5, color="#dddddd", linewidth=0.6)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter("{x:g}")
        for index, (state, marker) in enumerate(marks.items()):
            lower = (index - (len(marks) - 1) / 2) * 0.8 / len(marks)
            for line, name in enumerate(names):
                if name in by_state[state]:
                    colour = ORANGE if name in papers else BLUE
                    score = by_state[state][name][where]
                    look = _look(state, marker, colour)
                    _draw(axes, line + lower, score, edge, look)
    columns[0].set_xlim(max(least, -edge) - 0.05 * edge, 1.05 * edge)
    columns[0].set_ylim(len(names) - 0.5, -0.5)
    columns[0].set_yticks(range(len(names)), names)
    colours = {f"{OWN}, the paper's method": ORANGE, "other methods": BLUE}
    legend = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    legend += [
        Line2D([], [], label=state, linestyle="none", **_look(state, marker, "black"))
        for state, marker in marks.items()
    ]
    figure.legend(
        handles=legend, loc="outside upper center", ncols=3 if len(legend) > 4 else len(legend)
    )
    style.note(
        figure,
        f"Left of zero: less loss than {BASELINE}, which is better. Large marks: means over "
        f"texts, with {curves.INTERVALS}. Small dots: texts. Triangles at the edge: further "
        "off; texts, or the mean that is printed.",
    )
    return figure


def _draw(axes: Axes, line: float, score: Score, edge: float, look: dict) -> None:
    """A setting's texts and mean, or an arrow at the edge beside the number of a mean beyond it."""
    colour = look["color"]
    if abs(score.mean) > edge:
        right = score.mean > 0
        place = (edge if right else -edge, line)
        axes.plot(*place, **look | {"marker": ">" if right else "<"})
        axes.annotate(
            number(score.mean, 2, sign=True),
            place,
            xytext=(-5 if right else 5, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="center",
            fontsize=7,
            color=colour,
        )
        return
    texts = np.array(score.texts)
    near = texts[abs(texts) <= edge]
    axes.scatter(near, [line] * len(near), s=8, alpha=0.35, color=colour, linewidths=0)
    for marker, end, off in ((">", edge, texts > edge), ("<", -edge, texts < -edge)):
        if off.any():
            axes.scatter([1.03 * end], [line], s=14, marker=marker, color=colour, linewidths=0)
    if score.low is not None:
        axes.plot([score.low, score.high], [line, line], color="black", linewidth=1)
    axes.plot(score.mean, line, **look)


def _look(state: str, marker: str, colour: str) -> dict:
    """Of a state's mark, hollow where nothing was trained."""
    face = "white" if state == UNTRAINED else colour
    return {"marker": marker, "color": colour, "markerfacecolor": face, "markersize": 4.5}
