"""How settings are drawn: unlike each other."""

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
