"""Scaling factors that were learned."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from analysis.beyond import learned as records
from analysis.beyond.loss_by_position import level
from analysis.comparison import Row, compared, own_methods
from analysis.results import Results
from core import rope
from core.beyond.methods.given_factors import learned_name
from core.setting import Setting
from figures.kit import style

# (colour, marker) of what was learned from the baseline's factors, and from others
_BASELINE = "#000000", "o"
_OTHERS = ("#EE3377", "s"), ("#33BBEE", "^"), ("#EE7733", "D"), ("#009988", "v"), ("#BBBBBB", "P")
_APART = 0.1  # of the logarithm of a divisor: lines that are nearer look like one


def learned(results: Results) -> Figure:
    """Learned scaling factors beside those that methods set.

    Beyond the paper. The learned divisors were trained while all weights were frozen. Of the
    methods that divide pairs by other numbers than 1 and s, those of the least loss beyond L are
    drawn, and a user's own; what coincides with a line is left out.

    A column for each scaling factor: above, factors that vary smoothly, at most MOST lines; below,
    the pairs that a selection slows.
    """
    results.require("learned")
    groups = records.groups(results)
    factors = list(dict.fromkeys(group.setting.factor for group in groups))
    settings = {factor: _settings(results, factor) for factor in factors}
    drawn = style.styles(setting for own in settings.values() for setting in own)
    others = (each.setting.method for each in groups if each.setting.method != rope.BASELINE)
    looks = dict(zip(dict.fromkeys(others), itertools.cycle(_OTHERS)))  # by where it started
    looks[rope.BASELINE] = _BASELINE
    selections = {factor: _selections(results, settings[factor]) for factor in factors}
    lines = max(len(own) for own in selections.values())
    figure, panels = plt.subplots(
        2,
        len(factors),
        figsize=(style.PAGE, 4.1 + 0.17 * lines),
        squeeze=False,
        sharex=True,
        height_ratios=(2.6, 0.17 * lines + 0.1),
    )
    for factor, axes, strip in zip(factors, *panels):
        there = [group for group in groups if group.setting.factor == factor]
        smooth = [setting for setting in settings[factor] if setting not in selections[factor]]
        for setting, by in _unlike(results, smooth, style.MOST - len(there)).items():
            look = style.line(drawn[setting])
            axes.plot(_share(results), by, label=setting.name, linewidth=0.9, **look)
        for group in there:
            _draw_learned(axes, results, group, *looks[group.setting.method])
        _draw_selections(strip, results, selections[factor], drawn)
        style.mark_length(axes, 1)
        style.mark_length(strip, 1, "")
        axes.set_xscale("log")
        axes.set_yscale("log", base=2)  # a slow pair's factor matters little and strays far
        axes.yaxis.set_major_locator(FixedLocator([0.5, 1, *(factor * 2.0**k for k in range(6))]))
        names = {1: "1 (kept)", factor: f"{factor:g} (= s)"}
        axes.yaxis.set_major_formatter(lambda value, _, names=names: names.get(value, f"{value:g}"))
        axes.set_title(f"s = {factor:g}", loc="left")
        axes.set_xlim(*(_share(results)[[0, -1]] * (0.9, 1.1)))
        strip.set_xlabel("wavelength / L")
    panels[0, 0].set_ylabel("divisor of a pair's frequency, θ / θ̂")
    style.one_legend(figure, panels[0], 4)
    style.note(
        figure,
        "A mark: a pair, from fast (left) to slow; both axes are logarithmic. What lies within "
        "10 % of a line is left out, and divisors above 16·s. Bands: the range "
        "over seeds, where there are several. Filled squares: pairs that are divided by s.",
    )
    return figure


def _settings(results: Results, factor: float) -> list[Setting]:
    """The settings without training: a user's own first, the baseline, then by loss beyond L."""
    losses = compared(results, "loss_by_position", False, factor)
    rows = records.methods(results, losses, variants=False)
    by_loss = [row.setting for row in sorted(rows, key=lambda row: level(row).mean)]
    first = [Setting(name, (), factor) for name in (*own_methods(results), rope.BASELINE)]
    return list(dict.fromkeys([*first, *by_loss]))


def _unlike(results: Results, settings: list[Setting], most: int) -> dict[Setting, np.ndarray]:
    """The divisors [pairs] of the first settings that can be told apart, NaN where a pair is
    stopped."""
    shown: dict[Setting, np.ndarray] = {}
    for setting in settings:
        by = records.inverse(results, setting)
        if by is None or len(shown) >= most:
            continue
        by = np.where(by < 16 * setting.factor, by, np.nan)  # CoPE divides its last pair by ∞
        if not any(np.nanmax(abs(np.log(by / other))) < _APART for other in shown.values()):
            shown[setting] = by
    return shown


def _share(results: Results) -> np.ndarray:
    """Each pair's wavelength over L, float64 [pairs]."""
    return results.geometry.wavelength / results.geometry.context_length


def _selections(results: Results, settings: list[Setting]) -> dict[Setting, np.ndarray]:
    """Which pairs are slowed, bool [pairs], by each setting that divides a pair's frequency by s or
    not at all."""
    selections = {}
    for setting in sorted(settings, key=lambda setting: setting.order):
        by = records.inverse(results, setting)
        if by is not None and (np.isclose(by, 1) | np.isclose(by, setting.factor)).all():
            selections[setting] = ~np.isclose(by, 1)
    return selections


def _draw_selections(
    axes: Axes, results: Results, selections: dict[Setting, np.ndarray], drawn: dict
) -> None:
    for row, (setting, slowed) in enumerate(selections.items()):
        colour, _ = drawn[setting]
        share = _share(results)
        axes.scatter(
            share,
            np.full(len(share), row),
            s=7,
            marker="s",
            facecolor="none",
            edgecolor=colour,
            linewidth=0.4,
        )
        axes.scatter(
            share[slowed], np.full(slowed.sum(), row), s=7, marker="s", color=colour, linewidth=0.4
        )
    axes.set_yticks(range(len(selections)), [setting.name for setting in selections])
    axes.set_ylim(len(selections) - 0.4, -0.6)
    axes.grid(visible=False)


def _draw_learned(axes: Axes, results: Results, group: Row, colour: str, marker: str) -> None:
    """The mean over seeds, and the range as a band."""
    by = records.factors(group)
    axes.fill_between(
        _share(results), by.min(axis=0), by.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )
    look = {"color": colour, "marker": marker, "markersize": 2.5, "linewidth": 1.4}
    axes.plot(_share(results), by.mean(axis=0), label=learned_name(group.setting.method), **look)
