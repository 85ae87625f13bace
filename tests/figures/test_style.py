"""How settings are drawn: unlike each other to every eye."""

import itertools

import numpy as np
from matplotlib.colors import to_rgb

from core import rope
from core.setting import Setting
from figures.kit import style


def test_settings_of_a_figure_are_unlike_and_alike_at_each_factor():
    by_factor = {}
    for factor, n_hats in ((2.0, (40, 20)), (4.0, (32, 18))):
        own = [Setting("dprope", (("n_hat", n_hat),), factor) for n_hat in n_hats]
        stranger = Setting("never-heard-of", (("strength", 3),), factor)
        others = [Setting(name, (), factor) for name in rope.METHODS]
        by_factor[factor] = [*others, *own, stranger]
    drawn = style.styles(setting for settings in by_factor.values() for setting in settings)
    first, second = ([drawn[setting] for setting in of] for of in by_factor.values())
    assert first == second and len({*first}) == len(first)
    assert drawn == style.styles(drawn)  # in any order


def test_the_same_options_look_alike_at_each_factor():
    """A legend names them once."""
    first, both, second = (
        [Setting("mine", (("strength", strength),), factor) for factor in (2.0, 4.0)]
        for strength in (1, 2, 3)
    )
    drawn = style.styles([first[0], *both, second[1]])
    assert drawn[both[0]] == drawn[both[1]]
    assert drawn[first[0]] != drawn[both[0]] != drawn[second[1]]


def test_an_n_hat_looks_alike_where_the_formula_stands_beside_it_at_one_factor_alone():
    formula, papers, larger = (
        Setting("dprope", options, factor)
        for options, factor in (((), 2.0), ((("n_hat", 40),), 2.0), ((("n_hat", 32),), 4.0))
    )
    drawn = style.styles([formula, papers, larger])
    assert drawn[papers] == drawn[larger] != drawn[formula]


def test_the_papers_methods_have_colours_of_their_own_to_every_eye():
    papers = [method for method in rope.METHODS.values() if method.published]
    looks = [*rope.METHODS["original"].styles, *rope.METHODS["dprope"].styles]
    looks += [method.styles[0] for method in papers]
    for (one, _), (other, _) in itertools.combinations({*looks}, 2):
        assert distance(one, other) > 0.15, (one, other)


# What remains of linear RGB to all, to the green-blind and to the red-blind (Machado et al. 2009).
EYES = np.array(
    [
        np.eye(3),
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    ]
)


def distance(one, other):
    """Of two colours to the eyes that see least of it; black is 1.7 from white."""
    seen = [np.clip(EYES @ np.array(to_rgb(colour)) ** 2.2, 0, 1) for colour in (one, other)]
    return np.linalg.norm(seen[0] ** (1 / 2.2) - seen[1] ** (1 / 2.2), axis=-1).min()
