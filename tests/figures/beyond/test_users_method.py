"""A method that a user added and measured is a curve in the figures of a folder of records."""

import shutil

import pytest

from analysis.results import Results
from core import rope
from figures.beyond.loss_by_position import loss_by_position
from figures.beyond.within_and_beyond import within_and_beyond
from figures.disturbance import disturbance
from figures.kit import draw
from records import RESULTS
from tests.files import read, write, write_record

LOSSES = "beyond/loss_by_position"
MORE = {"mine": 0.01, "yarn": 0}  # loss in nats than YaRN's


@pytest.fixture
def mine(monkeypatch):
    """A method of a user's own."""
    monkeypatch.setitem(rope.METHODS, "mine", None)  # which takes it away afterwards
    del rope.METHODS["mine"]
    rope.register("mine", title="Mine")(rope.METHODS["yarn"].function)


def test_a_users_own_method_is_drawn_beside_the_papers(tmp_path, mine):
    """Whatever it scores: it has YaRN's losses, a nat more, and YaRN's passkeys."""
    folder = tmp_path / "results/tiny"
    shutil.copytree(RESULTS / "tiny/passkey", folder / "passkey")
    shutil.copytree(RESULTS / "tiny" / LOSSES, folder / LOSSES)
    shutil.copy(RESULTS / "tiny/model.json", folder)
    for name in ("passkey/yarn_s=2", f"{LOSSES}/yarn_s=2_books=30"):
        record = read(folder / f"{name}.json")
        record["run"]["method"] = "mine"
        for losses in record["scores"].get("blocks", {}).values():
            losses[:] = [loss + 1 for loss in losses]
        write_record(folder / f"{name.replace('yarn', 'mine')}.json", record)
    results = Results.of("tiny", tmp_path / "results")
    panel = {axes.get_title("left"): axes for axes in draw.figure("passkey", results).axes}
    assert "Mine" in panel["without training, s = 2"].get_legend_handles_labels()[1]
    title = loss_by_position(results).axes[0].get_title("left")
    assert "Mine +1.00" in " ".join(title.split()).partition("off the scale: ")[2]
    lines = disturbance(results).axes[0].get_legend_handles_labels()[1]
    assert lines == ["DPRoPE (t = 0)", "PI", "YaRN", "Mine"]
    names = within_and_beyond(results).axes[0].get_yticklabels()
    assert "Mine" in {name.get_text() for name in names}
    for parent, sketched in (("whole/results", False), ("a-quick/results", True)):
        shutil.copytree(folder, tmp_path / parent / "tiny")
        drawn = draw.figure("passkey", Results.of("tiny", tmp_path / parent))
        assert ("a sketch" in {text.get_text() for text in drawn.texts}) == sketched


def named(axes):
    return {line.get_label() for line in axes.lines if len(line.get_xdata()) > 2}


@pytest.mark.parametrize("model", ["tiny", "mine-too"])
def test_a_users_texts_stand_beside_the_set_of_more_methods(tmp_path, mine, model):
    """On more texts than those, and of a model of the user's own alike."""
    folder = tmp_path / "results" / model
    shutil.copytree(RESULTS / "tiny" / LOSSES, folder / LOSSES)
    write(folder / "model.json", read(RESULTS / "tiny/model.json"))
    for name in MORE:
        record = read(folder / LOSSES / "yarn_s=2_books=30.json")
        texts, losses = record["run"]["data"], record["scores"]["blocks"]
        for title in list(texts)[:9]:
            texts[f"{title}, again"] = texts[title]
            losses[f"{title}, again"] = losses[title]
        record["run"]["method"] = name
        for of_text in losses.values():
            of_text[:] = [loss + MORE[name] for loss in of_text]
        write_record(folder / LOSSES / f"{name}_s=2_books=39.json", record)
    panels = loss_by_position(Results.of(model, tmp_path / "results")).axes
    by_title = {axes.get_title("left"): named(axes) for axes in panels}
    first, second = (by_title[f"without training, s = 2, {count} texts"] for count in (30, 39))
    assert second == {"YaRN", "Mine"}
    committed = named(loss_by_position(Results.of("tiny")).axes[0])
    assert len(first & committed) == 6 and "DPRoPE (n̂ = 40)" in first
