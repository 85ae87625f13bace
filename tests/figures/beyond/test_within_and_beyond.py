"""Losses minus YaRN's on a linear axis: what is near apart, what is far written out, untrained and
fine-tuned on the same texts."""

import re

import pytest

from core.errors import InputError
from experiments.kit.records import ROOT
from figures.beyond import within_and_beyond
from tests.analysis.recorder import LENGTH, Recorder

BOOKS = [f"Book {index}" for index in range(5)]


def losses(within, beyond):
    """A record of five books whose losses are these plus 0, 0.001 … 0.004."""
    of_book = {
        book: [within + index / 1000, beyond + index / 1000] for index, book in enumerate(BOOKS)
    }
    ranges = [{"start": 0, "end": LENGTH}, {"start": LENGTH, "end": 2 * LENGTH}]
    return {
        "data": dict.fromkeys(BOOKS, "hash"),
        "length": 2 * LENGTH,
        "scores": {"block": LENGTH, "blocks": of_book, "ranges": ranges},
    }


@pytest.fixture
def recorder(tmp_path):
    """Within L and beyond, untrained."""
    recorder = Recorder(tmp_path, n_hat={"2": 40})
    for method, options, within, beyond in [
        ("yarn", {}, 3.0, 3.0),
        ("dprope-covered", {}, 3.015, 3.025),
        ("dprope", {"n_hat": 40}, 3.05, 3.04),
        ("dprope", {}, 3.22, 3.23),
        ("original", {}, 2.97, 4.72),
        ("mrrope-pro", {}, 3.01, 3.01),
    ]:
        recorder.add(
            "loss_by_position", method, options=options, **losses(within=within, beyond=beyond)
        )
    return recorder


def drawn(axes):
    """By a method's name: its marks' places in the order of the lines, and numbers at the edge."""
    names = [label.get_text() for label in axes.figure.axes[0].get_yticklabels()]
    marks = {}
    numbers = {}
    for line in axes.lines:
        if line.get_marker() in ("o", "D"):
            place = line.get_xdata()[0]
            height = line.get_ydata()[0]
            marks.setdefault(names[round(height)], []).append(place)
    for text in axes.texts:
        numbers.setdefault(names[round(text.xy[1])], []).append(text.get_text())
    return marks, numbers


def test_near_methods_are_marked_and_far_ones_written_at_the_edge(recorder):
    within, beyond = within_and_beyond.build(recorder.results()).axes
    assert within.get_xscale() == beyond.get_xscale() == "linear"
    marks, numbers = drawn(within)
    assert marks.keys() == {
        "YaRN",
        "YaRN without blend",
        "DPRoPE at n̂ = 40",
        "original",
    }
    assert marks["YaRN"] == [0]
    assert marks["DPRoPE at n̂ = 40"] == pytest.approx([0.05])
    assert marks["original"] == pytest.approx([-0.03])
    assert numbers == {"DPRoPE at t = 0": ["+0.22"]}
    marks, numbers = drawn(beyond)
    assert marks["DPRoPE at n̂ = 40"] == pytest.approx([0.04])
    assert numbers == {"DPRoPE at t = 0": ["+0.23"], "original": ["+1.72"]}
    low, high = within.get_xlim()
    places = [place for axes in (within, beyond) for of in drawn(axes)[0].values() for place in of]
    assert low < min(places) < max(places) < high


def test_fine_tuned_methods_stand_below_untrained_ones_of_the_same_texts(recorder):
    add = recorder.add
    for seed in (0, 1):
        add("loss_by_position", "yarn", seed=seed, **losses(within=2.9, beyond=2.8))
        options = {"n_hat": 40}
        ours = losses(within=2.91, beyond=2.82 + seed / 100)
        add("loss_by_position", "dprope", options=options, seed=seed, **ours)
    others = losses(within=1, beyond=1) | {"data": {"Another Book": "hash"}}
    for method in ("yarn", "pi", "original"):  # of other texts, though of more methods
        for seed in (0, 1):
            add("loss_by_position", method, seed=seed, **others)
    figure = within_and_beyond.build(recorder.results())
    for axes, untrained, fine_tuned in zip(figure.axes, (0.05, 0.04), (0.01, 0.025)):
        marks, _ = drawn(axes)
        assert marks["DPRoPE at n̂ = 40"] == pytest.approx([untrained, fine_tuned])
        assert marks["YaRN"] == [0, 0] and "PI" not in marks
    (legend,) = figure.legends
    named = {text.get_text() for text in legend.get_texts()}
    assert {"untrained", "fine-tuned", "DPRoPE, the paper's method", "other methods"} == named


def test_lines_are_those_of_readmes_table(recorder):
    results = recorder.results()
    section = (ROOT / "README.md").read_text().split("## The methods side by side")[1]
    rows = re.findall(r"^\| (\w.+?)(?: \(.*?\))?: ", section.split("\n## ")[0], re.MULTILINE)
    names = [name for name in rows if not name.startswith("SmolLM2")]
    assert names == list(within_and_beyond.settings(results.model, 2.0))
    del recorder.records["loss_by_position/000_yarn.json"]
    with pytest.raises(InputError, match="YaRN"):
        within_and_beyond.build(recorder.results())


def test_half_of_the_means_are_in_the_inner_half_of_the_axis():
    assert within_and_beyond.axis_end([0, -0.02, 0.05, 9]) == pytest.approx(0.1)
    assert within_and_beyond.axis_end([0, 0]) > 0
