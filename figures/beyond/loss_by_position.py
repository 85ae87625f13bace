"""Loss by position, as curves."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import books
from analysis.beyond import loss_by_position as losses
from analysis.comparison import Comparison, Row, in_comparison, own_methods
from analysis.results import Results
from analysis.scores import Score, number
from analysis.settings import BASELINE
from core import rope
from core.setting import Setting
from figures.beyond import curves
from figures.kit import style

Kind = tuple[str | None, bool]  # a method, and whether it has the paper's n̂
PAPERS = (rope.PROPOSED, True)  # is always on the scale


def loss_by_position(results: Results) -> Figure:
    """Loss by position in a text, minus YaRN's.

    Beyond the paper. At most seven methods, the same in all panels: YaRN, DPRoPE, the model that is
    not extended, a user's own, and of the others those of least loss beyond L in the first panel.
    The table of losses by position has all of them.

    A panel for each state, each kind of fine-tunes and each scaling factor: of the comparable sets
    of records that have the baseline and the most methods that are drawn, that on the most texts;
    and each set that has a method of a user's own.

    Raises:
        NotMeasured: there is no such set.
    """
    shown = _shown(results)
    if not shown:
        raise results.lacks(
            f"losses by position of {BASELINE} and another method",
            "loss_by_position",
            "--method yarn",
        )
    kinds = chosen(results, shown)
    drawn = style.styles(row.setting for rows in shown for row in rows.rows)
    figure, grid = curves.panels(len(shown), 2.2, 0.6)
    for axes, rows in zip(grid.ravel(), shown):
        own = [row for row in _methods(results, rows) if _kind(row.setting) in kinds]
        axes.set_title(curves.title(rows), loc="left")
        _panel(axes, own, rows.find(rope.BASELINE, {}), drawn, results.context_length)
    for axes in grid[:, 0]:
        axes.set_ylabel(f"loss minus {BASELINE}'s\n(nats per token)")
    style.note(
        figure,
        f"Below zero: less loss than {BASELINE}, which is better. Lines: means over texts. "
        f"Bands: {curves.INTERVALS}. Off the scale: "
        "means over positions. Right of L: positions that pre-training never saw.",
    )
    return figure


def chosen(results: Results, shown: list[Comparison]) -> list[Kind]:
    """The kinds of settings that are drawn, at most MOST: the paper's method, the baseline, the
    model that is not extended, a user's own, then those of the least loss beyond L in the first
    set, then in the others."""
    users = own_methods(results)
    listed = [_methods(results, rows) for rows in shown]
    by_loss = [
        row for rows in listed for row in sorted(rows, key=lambda row: losses.level(row).mean)
    ]
    first = [(rope.BASELINE, False), PAPERS, (rope.PROPOSED, False), (rope.ORIGINAL, False)]
    first += [(name, False) for name in users]
    there = {_kind(row.setting) for rows in listed for row in rows}
    kinds = [kind for kind in first if kind in there] + [_kind(row.setting) for row in by_loss]
    return list(dict.fromkeys(kinds))[: style.MOST]


def _shown(results: Results) -> list[Comparison]:
    """Of each factor and state, and of each kind of fine-tunes, the set of the most methods, of
    several that on the most texts; and those of a user's own methods."""
    users = own_methods(results)
    sets = [
        rows
        for rows in books.sets(results, "loss_by_position")
        if rows.find(rope.BASELINE, {}) and _drawn(results, rows) > 1
    ]
    most: dict[tuple, Comparison] = {}
    for rows in sorted(sets, key=lambda rows: (_drawn(results, rows), _texts(rows))):
        row = rows.rows[0]
        most[row.setting.factor, rows.training] = rows
    return [
        rows
        for rows in sets
        if rows in most.values() or any(row.setting.method in users for row in rows.rows)
    ]


def _methods(results: Results, rows: Comparison) -> list[Row]:
    """The rows without ablations and options; of those that make the same model, which has the same
    losses, the first."""
    found: dict[bytes, Row] = {}
    for row in rows.rows:
        if in_comparison(results, row.setting) and _kind(row.setting):
            found.setdefault(losses.by_text(*row.runs).tobytes(), row)
    return list(found.values())


def _kind(setting: Setting) -> Kind | None:
    """What a setting has in common with those at other factors; None of one with other options."""
    if not setting.plain("n_hat") or setting.last:
        return None
    return setting.method, setting.option("n_hat") is not None


def _drawn(results: Results, rows: Comparison) -> int:
    """How many of a set's methods would be drawn, were it alone."""
    return min(len(_methods(results, rows)), style.MOST)


def _texts(rows: Comparison) -> int:
    return len({*losses.texts(rows.first)})


def _panel(axes: Axes, rows: list[Row], baseline: Row, drawn: dict, context_length: int) -> None:
    position, _ = losses.curve(baseline.first)
    position = position / 1024
    gaps = {row: losses.gaps_by_position(row, baseline) for row in rows}
    means = {row: float(np.mean([gap.mean for gap in of])) for row, of in gaps.items()}
    papers = [abs(means[row]) for row in rows if _kind(row.setting) == PAPERS]
    edge = max(curves.axis_end(means.values()), *papers, 0)
    near = [gaps[row] for row in rows if abs(means[row]) <= edge]
    # What the axis reaches with these curves is on the scale, too.
    reach = max(
        max(abs(gap.low or gap.mean), abs(gap.high or gap.mean)) for of in near for gap in of
    )
    far = [row for row in rows if abs(means[row]) > max(edge, reach)]
    ends = {}
    for row in (row for row in rows if row not in far):
        name = row.setting.name
        look = drawn[row.setting]
        _curve(axes, position, gaps[row], name, look)
        ends[name] = (position[-1], gaps[row][-1].mean, look[0])
    numbers = [f"{row.setting.name} {number(means[row], 2, sign=True)}" for row in far]
    curves.off_scale(axes, numbers)
    axes.axhline(0, color="black", linewidth=0.4)
    length = position[-1] + position[0]
    style.mark_length(axes, context_length / 1024)
    axes.set_xlabel("position (1024 tokens)")
    axes.set_xticks(curves.ticks(length))
    axes.set_xlim(0, length)
    curves.name_curves(axes, ends)


def _curve(
    axes: Axes, position: np.ndarray, gaps: list[Score], name: str, look: rope.Style
) -> None:
    axes.plot(position, [gap.mean for gap in gaps], label=name, **style.line(look))
    if all(gap.low is not None for gap in gaps):
        low, high = ([getattr(gap, end) for gap in gaps] for end in ("low", "high"))
        axes.fill_between(position, low, high, color=look[0], alpha=0.12, linewidth=0)
