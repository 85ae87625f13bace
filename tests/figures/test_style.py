"""How settings are drawn: unlike each other to every eye."""

import itertools

import matplotlib.colors
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.text import Text

from analysis.settings import Setting
from core import rope
from figures.kit import style


def test_settings_of_a_panel_are_unlike_and_alike_at_each_factor():
    panels = []
    for factor, n_hats in ((2.0, (40, 20)), (4.0, (32, 18))):
        own = [Setting("dprope", (("n_hat", n_hat),), factor) for n_hat in n_hats]
        panels.append([Setting("yarn", (), factor), Setting("dprope", (), factor), *own])
        panels[-1].append(Setting("never-heard-of", (("strength", factor),), factor))
    drawn = style.styles(*panels)
    first, second = ([drawn[setting] for setting in panel] for panel in panels)
    assert first == second
    check([[colour for colour, _ in first]])
    every = [Setting(name, (), 2.0) for name in rope.METHODS]
    drawn = style.styles(every)
    assert len(set(drawn.values())) == len(every) == len(drawn)


def test_names_at_the_ends_of_curves_do_not_hide_each_other():
    figure, axes = plt.subplots(layout="none")
    axes.set_ylim(0, 1)
    names = [f"curve {index} of a long name" for index in range(5)]
    style.name_curves(
        axes,
        {name: (1.0, 0.02 * index) for index, name in enumerate(names)},
        dict.fromkeys(names, "k"),
    )
    figure.draw_without_rendering()
    boxes = sorted((Text.get_window_extent(text) for text in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == 5 and all(
        low.y1 <= high.y0 + 0.5 for low, high in itertools.pairwise(boxes)
    )
    plt.close(figure)


def check(panels):
    """The colours of each panel: at most five, none twice to any eye."""
    for colours in panels:
        assert len(colours) <= 5
        for one, other in itertools.combinations(colours, 2):
            assert distance(one, other) > 12, (one, other)


# What remains of linear RGB to all, to the green-blind and to the red-blind (Machado et al. 2009).
EYES = (
    np.eye(3),
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
)


def distance(one: str, other: str) -> float:
    """ΔE of CIE 1976 to the eyes that see least of it; 2.3 is just noticeable."""
    return min(float(np.linalg.norm(lab(one, eyes) - lab(other, eyes))) for eyes in EYES)


def lab(colour: str, eyes: np.ndarray) -> np.ndarray:
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    linear = np.clip(
        eyes @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1
    )
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ linear
    ratio = xyz / [0.9505, 1.0, 1.089]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
