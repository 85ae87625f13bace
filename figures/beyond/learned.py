"""Scaling factors that were learned."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.beyond import learned as records
from analysis.beyond.learned import Learned
from analysis.beyond.loss_by_position import untrained
from analysis.results import Results
from analysis.settings import Setting
from core import rope
from figures.kit import style

_LEARNED = {rope.BASELINE: ("#000000", "o")}  # by where it started
_OTHERS = "#EE3377", "s"


def learned(results: Results) -> Figure:
    """Learned scaling factors beside every method's.

    Beyond the paper. Thick lines with markers: the divisors λ that were learned while all weights
    were frozen, with their range over seeds. Other lines: what each method sets. λ = 1 leaves a
    pair as it is, λ = s interpolates it. A line that ends early is of a method that stops the pairs
    there.

    A column for each scaling factor: above, factors that vary smoothly; below, the pairs that a
    selection slows.
    """
    groups = records.groups(results)
    factors = list(dict.fromkeys(group.factor for group in groups))
    rows = {
        factor: records.methods(results, untrained(results, factor), variants=False)
        for factor in factors
    }
    settings = {factor: [row.setting for row in own] for factor, own in rows.items()}
    drawn = style.styles(setting for own in settings.values() for setting in own)
    selections = {factor: _selections(results, settings[factor]) for factor in factors}
    lines = max(len(own) for own in selections.values())
    figure, panels = plt.subplots(
        2,
        len(factors),
        figsize=(style.PAGE, 3.6 + 0.17 * lines),
        squeeze=False,
        sharex=True,
        height_ratios=(2.6, 0.17 * lines + 0.1),
    )
    for factor, axes, strip in zip(factors, *panels):
        for setting in settings[factor]:
            by = records.inverse(results, setting)
            if by is not None and setting not in selections[factor]:
                by = np.where(
                    by < 16 * factor, by, np.nan
                )  # CoPE divides its last pair by all that there is
                axes.plot(
                    _share(results),
                    by,
                    label=setting.name,
                    linewidth=0.9,
                    **style.line(drawn[setting]),
                )
        for group in (group for group in groups if group.factor == factor):
            _draw_learned(axes, results, group)
        _draw_selections(strip, results, selections[factor], drawn)
        style.mark_length(axes, 1)
        style.mark_length(strip, 1, "")
        axes.set_xscale("log")
        axes.set_yscale("log", base=2)  # a slow pair's factor matters little and strays far
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_title(f"s = {factor:g}", loc="left")
        axes.set_xlim(*(_share(results)[[0, -1]] * (0.9, 1.1)))
        strip.set_xlabel("wavelength / L")
    panels[0, 0].set_ylabel("divisor of a pair's frequency, θ / θ̂")
    style.one_legend(figure, panels[0], 4)
    return figure


def _share(results: Results) -> np.ndarray:
    """Each pair's wavelength over L, float64 [pairs]."""
    return results.geometry.wavelength / results.geometry.context_length


def _selections(results: Results, settings: list[Setting]) -> dict[Setting, np.ndarray]:
    """Which pairs are slowed, bool [pairs], by each setting that divides a pair's frequency by s or
    not at all."""
    selections = {}
    for setting in settings:
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
    axes.set_title("filled: pairs that are divided by s", loc="left", fontsize=7)


def _draw_learned(axes: Axes, results: Results, group: Learned) -> None:
    """The mean over seeds, and the range as a band."""
    by = group.factors
    colour, marker = _LEARNED.get(group.method, _OTHERS)
    axes.fill_between(
        _share(results), by.min(axis=0), by.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )
    look = {"color": colour, "marker": marker, "markersize": 2.5, "linewidth": 1.4}
    axes.plot(_share(results), by.mean(axis=0), label=group.name, **look)
