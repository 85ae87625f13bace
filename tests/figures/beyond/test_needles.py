"""Keys by distance: a panel for each set, told apart by its title."""

from figures.kit import draw
from tests.analysis.recorder import LENGTH


def test_the_panels_of_two_rounds_of_fine_tunes_are_told_apart(recorder):
    places = ((0, LENGTH + 9), (LENGTH, 9))
    keys = [{"place": at, "distance": far, "nats": 3.0, "found": True} for at, far in places]
    ranges = [{"start": start, "nats": 3.0} for start in (0, LENGTH)]
    scores = {"keys": {"A Book": keys}, "ranges": ranges}
    for training in ({}, {"per_book": 2}):
        for method in ("yarn", "pi"):
            recorder.add("needles", method, scores, seed=0, training=training)
    panels = draw.figure("needles", recorder.results()).axes
    assert [axes.get_title("left") for axes in panels] == [
        "fine-tuned, s = 2, 1 text",
        "fine-tuned (2 sequences a book), s = 2, 1 text",
    ]
