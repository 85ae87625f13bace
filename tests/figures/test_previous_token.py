"""The map of heads holds the records' numbers, seeds averaged, and the original above what was trained."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from core import rope
from core.errors import InputError
from figures import previous_token
from figures.kit import command
from tests.analysis.made import Made, score


def heads(*shares):
    """Scores of one head for each (own, scaled)."""
    found = [
        {"layer": 1, "head": head, "offset": 1, "own": own, "scaled": scaled}
        for head, (own, scaled) in enumerate(shares)
    ]
    return {"heads": found, "own": score(1), "scaled": score(1)}


def test_a_square_is_the_mean_over_seeds_of_a_head_under_a_method(tmp_path):
    made = Made(tmp_path)
    made.add("previous_token", rope.ORIGINAL, heads((60, 10), (50, 20)))
    made.add("previous_token", rope.UNIT, heads((20, 30), (10, 40)))
    made.add("previous_token", rope.RIVAL, heads((55, 5)))  # of other heads, so not beside them
    for seed, own in ((0, 20), (1, 40)):
        made.add("previous_token", rope.UNIT, heads((own, 30), (10, 40)), seed=seed)
    figure = previous_token.build(made.results())
    panels = [axes for axes in figure.axes if axes.images]
    maps = [np.array(axes.images[0].get_array()) for axes in panels]
    expected = [[[60, 50], [20, 10]], [[10, 20], [30, 40]], [[60, 50], [30, 10]], [[10, 20], [30, 40]]]
    np.testing.assert_array_equal(maps, expected)
    names = [rope.METHODS[method].title for method in (rope.ORIGINAL, rope.UNIT)]
    assert [label.get_text() for label in panels[2].get_yticklabels()] == names
    plt.close(figure)


@pytest.mark.parametrize("name", command.names())
def test_every_figure_says_what_it_is_and_how_to_read_it(name):
    title, reading = command.caption(name)
    assert title.endswith(".") and reading.endswith(".") and "\n" not in title + reading


def test_a_figure_that_there_is_not_has_no_caption():
    with pytest.raises(InputError, match="unknown figure"):
        command.caption("nothing")
