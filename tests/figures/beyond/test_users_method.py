"""A method that a user added and measured is a curve in the figures of a folder of records."""

import pytest

from core import rope
from figures.beyond.loss_by_position import loss_by_position
from figures.beyond.within_and_beyond import within_and_beyond
from figures.disturbance import disturbance
from figures.kit import draw
from tests.analysis.recorder import Recorder, of_passkeys


@pytest.fixture(autouse=True)
def mine(monkeypatch):
    """A method of a user's own."""
    monkeypatch.setitem(rope.METHODS, "mine", None)  # which takes it away afterwards
    del rope.METHODS["mine"]
    rope.register("mine", title="Mine")(rope.METHODS["yarn"].function)


def add(recorder, count, losses):
    """Records on so many books, each of its method's loss."""
    for method, loss in losses.items():
        recorder.losses(method, {f"Book {i} of {count}": [loss + i] * 2 for i in range(count)})


@pytest.mark.parametrize("folder", ["whole", "a-quick"])
def test_a_users_own_method_is_drawn_beside_the_papers(tmp_path, folder):
    """Whatever it scores: it loses a nat more than YaRN."""
    recorder = Recorder(tmp_path / folder)
    for method in ("pi", "mine"):
        recorder.add("passkey", method, of_passkeys({16384: 0.5}, 2))
    add(recorder, 5, {"yarn": 3.0, "ntk": 3.1, "pi": 3.2, "mine": 4.0})
    results = recorder.results()
    figure = draw.figure("passkey", results)
    (panel,) = (axes for axes in figure.axes if axes.get_title("left").endswith("s = 2"))
    assert "Mine" in panel.get_legend_handles_labels()[1]
    assert ("a sketch" in {text.get_text() for text in figure.texts}) == (folder == "a-quick")
    title = loss_by_position(results).axes[0].get_title("left")
    assert "Mine +1.00" in " ".join(title.split()).partition("off the scale: ")[2]
    lines = disturbance(results).axes[0].get_legend_handles_labels()[1]
    assert lines == ["DPRoPE (t = 0)", "PI", "YaRN", "Mine"]
    names = within_and_beyond(results).axes[0].get_yticklabels()
    assert "Mine" in {name.get_text() for name in names}


@pytest.mark.parametrize("model", ["tiny", "my-own"])
def test_a_users_texts_stand_beside_the_set_of_more_methods(recorder, model):
    """On more texts than those, and of a model of the user's own alike."""
    names = {
        "yarn": "YaRN",
        "dprope": "DPRoPE (t = 0)",
        "ntk": "NTK-aware",
        "pi": "PI",
        "mrrope-uni": "MrRoPE-Uni",
        "mrrope-pro": "MrRoPE-Pro",
        "longrope2": "LongRoPE2's rule",  # for which there is no room beside "Mine"
    }
    add(recorder, 5, {method: 3 + index / 100 for index, method in enumerate(names)})
    add(recorder, 6, {"yarn": 3.0, "mine": 3.01})
    panels = loss_by_position(recorder.results(model)).axes
    assert [axes.get_title("left").split(", ")[-1] for axes in panels] == ["5 texts", "6 texts"]
    labels = [[line.get_label() for line in axes.lines] for axes in panels]
    drawn = [{label for label in of_panel if label[0] != "_"} for of_panel in labels]
    assert drawn == [{*names.values()} - {"LongRoPE2's rule"}, {"YaRN", "Mine"}]
