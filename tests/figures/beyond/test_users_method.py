"""A method that a user added and measured is a curve in the figures of a folder of records."""

import shutil

from analysis.results import Results
from core import rope
from figures import passkey
from figures.beyond.loss_by_position import loss_by_position
from figures.beyond.within_and_beyond import within_and_beyond
from figures.disturbance import disturbance
from figures.kit import draw
from records import RESULTS
from tests.files import read, write_record

LOSSES = "beyond/loss_by_position"


def test_a_users_own_method_is_drawn_beside_the_papers(tmp_path, monkeypatch):
    """Whatever it scores: it has YaRN's losses, a nat more, and YaRN's passkeys."""
    monkeypatch.setitem(rope.METHODS, "mine", None)  # which takes it away afterwards
    del rope.METHODS["mine"]
    rope.register("mine", title="Mine")(rope.METHODS["yarn"].function)
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
    panel = {axes.get_title("left"): axes for axes in passkey.passkey(results).axes}
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
