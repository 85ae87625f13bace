"""Losses minus YaRN's on a linear axis: what is near apart, what is far written out, untrained and
fine-tuned on the same texts."""

import dataclasses

import pytest

from core import rope
from core.errors import InputError
from figures.beyond.within_and_beyond import BLUE, ORANGE, within_and_beyond
from tests.analysis.recorder import Recorder

OWN = "DPRoPE (n̂ = 40)"
LEAST = "DPRoPE (t = 0)"
UNTRAINED = [
    ("yarn", {}, 3.0, 3.0),
    ("dprope-covered", {}, 3.015, 3.025),
    ("dprope", {"n_hat": 40}, 3.05, 3.04),
    ("dprope", {}, 3.22, 3.23),
    ("original", {}, 2.97, 4.72),
    ("mrrope-pro", {}, 3.01, 3.01),
]


def add(recorder, method, options, *losses, books="Book", **more):
    """A record of five books whose losses within and beyond L are these plus 0, 0.001 … 0.004."""
    of_books = {f"{books} {i}": [loss + i / 1000 for loss in losses] for i in range(5)}
    recorder.losses(method, of_books, options=options, **more)


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path, n_hat={"2": 40})
    for method, options, *losses in UNTRAINED:
        add(recorder, method, options, *losses)
    return recorder


def drawn(axes):
    """By a method's name: its marks' places from above, and the numbers at the edge."""
    names = [label.get_text() for label in axes.figure.axes[0].get_yticklabels()]
    marks = {}
    for line in axes.lines:
        if line.get_marker() in ("o", "D", "s"):
            (place,) = line.get_xdata()
            (height,) = line.get_ydata()
            marks.setdefault(names[round(height)], []).append(round(place, 6))
    return marks, {names[round(text.xy[1])]: text.get_text() for text in axes.texts}


def test_near_methods_are_marked_and_far_ones_written_at_the_edge(recorder):
    within, beyond = within_and_beyond(recorder.results()).axes
    assert within.get_xscale() == beyond.get_xscale() == "linear"
    near = {"YaRN": [0], "YaRN without blend": [0.015], OWN: [0.05], "original": [-0.03]}
    assert drawn(within) == (near, {LEAST: "+0.22"})
    near = {"YaRN": [0], "YaRN without blend": [0.025], OWN: [0.04]}
    assert drawn(beyond) == (near, {LEAST: "+0.23", "original": "+1.72"})
    _, high = within.get_xlim()  # half of the means are in the inner half of the axis, up to 0.09
    assert high == pytest.approx(1.05 * 0.09)


def test_fine_tuned_methods_stand_below_untrained_ones_of_the_same_texts(recorder):
    for seed in (0, 1):
        add(recorder, "yarn", {}, 2.9, 2.8, seed=seed)
        add(recorder, "dprope", {"n_hat": 40}, 2.91, 2.82 + seed / 100, seed=seed)
        for method in ("yarn", "pi", "original"):  # of other texts, though of more methods
            add(recorder, method, {}, 1, 1, seed=seed, books="Other")
    figure = within_and_beyond(recorder.results())
    for axes, untrained, fine_tuned in zip(figure.axes, (0.05, 0.04), (0.01, 0.025)):
        marks, _ = drawn(axes)
        assert marks[OWN] == [untrained, fine_tuned]
        assert marks["YaRN"] == [0, 0] and "PI" not in marks


def test_each_round_of_fine_tunes_has_marks_of_its_own(recorder):
    """Also one of fewer methods than another."""
    first = {"yarn": 3.0, "dprope-covered": 3.01, "original": 3.02, "longrope2": 3.03}
    second = {"yarn": 3.0, "original": 3.04}
    for losses, training in (first, {}), (second, {"per_book": 1}):
        for method, loss in losses.items():
            add(recorder, method, {}, loss, loss, seed=0, training=training)
    figure = within_and_beyond(recorder.results())
    marks, _ = drawn(figure.axes[0])
    assert marks["original"] == [-0.03, 0.02, 0.04]
    assert marks["YaRN without blend"] == [0.015, 0.01]
    assert marks["LongRoPE2's rule"] == [0.03]  # which was not measured without training
    (legend,) = figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown[2:] == ["untrained", "fine-tuned", "fine-tuned, 1 sequence of each book"]


def test_a_method_that_is_called_after_the_papers_does_not_look_like_it(recorder, monkeypatch):
    mine = dataclasses.replace(rope.METHODS["dprope"], name="mine", title="DPRoPE, mine")
    monkeypatch.setitem(rope.METHODS, "mine", mine)
    add(recorder, "mine", {}, 3.01, 3.01)
    axes, _ = within_and_beyond(recorder.results()).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    colours = {
        names[round(*line.get_ydata())]: line.get_color()
        for line in axes.lines
        if line.get_marker() == "o"
    }
    assert colours[OWN] == ORANGE and colours["DPRoPE, mine"] == colours["YaRN"] == BLUE


def test_without_the_rival_there_is_no_figure(recorder):
    del recorder.records["loss_by_position/yarn_000.json"]
    with pytest.raises(InputError, match="YaRN"):
        within_and_beyond(recorder.results())
