"""Keys by distance: a panel for each set, told apart by its title."""

from figures.kit import draw


def test_the_panels_of_two_rounds_of_fine_tunes_are_told_apart(recorder):
    for training in ({}, {"per_book": 2}):
        for method in ("yarn", "pi"):
            recorder.keys(method, {"A Book": [3.0, 3.0]}, seed=0, training=training)
    panels = draw.figure("needles", recorder.results()).axes
    assert [axes.get_title("left") for axes in panels] == [
        "fine-tuned, s = 2, 1 text",
        "fine-tuned, 2 sequences of each book,\ns = 2, 1 text",
    ]
