"""Beyond the paper: the factors that the model itself asks for, learned with all weights frozen, and every method's.

Thick line with markers: the divisors λ that training found while all weights were frozen, with their range over seeds.
Other lines: what each method sets. λ = 1 leaves a pair as it is, λ = s interpolates it. A method near the thick line
does what the model itself asks for.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import learned
from analysis.learned import Learned
from analysis.results import Results
from analysis.rows import Setting
from core import rope
from figures.kit import style


def build(results: Results) -> Figure:
    """λ_i against wavelength / L, a panel for each factor: learned ones with their range over seeds, thick."""
    groups = learned.groups(results)
    factors = list(dict.fromkeys(group.factor for group in groups))
    settings = {factor: [row.setting for row in learned.compared(results, factor).rows] for factor in factors}
    drawn = style.styles(setting for own in settings.values() for setting in own)
    figure, panels = plt.subplots(1, len(factors), figsize=(style.PAGE, 4.0), squeeze=False)
    for axes, factor in zip(panels[0], factors):
        for setting in settings[factor]:
            _draw_method(axes, results, setting, drawn[setting])
        for group in (group for group in groups if group.factor == factor):
            _draw_learned(axes, results, group)
        geometry = results.scale.geometry
        style.mark_length(axes, 1, "λ = L")
        axes.set_xscale("log")
        axes.set_xlabel("wavelength / L")
        axes.set_title(f"s = {factor:g}", loc="left")
        axes.set_xlim(*(geometry.wavelength[[0, -1]] / geometry.context_length))
    panels[0, 0].set_ylabel("λ, by which θ is divided")
    style.one_legend(figure, panels[0], 4)
    return figure


def _draw_method(axes: Axes, results: Results, setting: Setting, look: rope.Style) -> None:
    by = learned.inverse(results, setting)
    if by is not None:
        geometry = results.scale.geometry
        share = geometry.wavelength / geometry.context_length
        axes.plot(share, by, label=setting.name, linewidth=0.9, **style.line(look))


def _draw_learned(axes: Axes, results: Results, group: Learned) -> None:
    geometry = results.scale.geometry
    share, by = geometry.wavelength / geometry.context_length, group.factors
    colour, marker = ("#000000", "o") if group.method == rope.RIVAL else ("#777777", "s")
    axes.fill_between(share, by.min(axis=0), by.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    axes.plot(share, by.mean(axis=0), color=colour, marker=marker, markersize=2.5, linewidth=1.4, label=group.name)
