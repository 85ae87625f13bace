"""How settings are drawn: unlike each other to every eye."""

import itertools
from dataclasses import replace

import matplotlib.colors
import numpy as np

from analysis.settings import Setting
from core import rope
from figures.kit import style


def test_eight_further_methods_and_their_variants_are_told_apart(monkeypatch):
    for index in range(8):
        new = replace(rope.METHODS["pi"], name=f"new-{index}", styles=())
        monkeypatch.setitem(rope.METHODS, new.name, new)
    settings = [Setting(name) for name in rope.METHODS] + [Setting("dprope", (("n_hat", 20),))]
    settings += [Setting("new-0", (("strength", value),)) for value in range(8)]
    drawn = style.styles(settings)
    assert len(set(drawn.values())) == len(settings)
    for (one, dash), (other, other_dash) in itertools.combinations(drawn.values(), 2):
        assert unlike(dash, other_dash) or distance(one, other) > 20, (one, dash, other, other_dash)


def unlike(one, other) -> bool:
    """Whether two line styles differ in their number of dashes, or by a quarter in their period or share of ink."""
    named = {"-": (1, 0, 0), "--": (3.7, 1.6), "-.": (6.4, 1.6, 1, 1.6)}  # matplotlib's, in line widths
    first, second = (np.array(named[dash] if isinstance(dash, str) else dash[1]) for dash in (one, other))
    measures = [(pattern.sum(), pattern[::2].sum() / pattern.sum()) for pattern in (first, second)]
    return len(first) != len(second) or any(max(pair) > 1.25 * min(pair) for pair in zip(*measures))


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
    linear = np.clip(eyes @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ linear
    ratio = xyz / [0.9505, 1.0, 1.089]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
