"""The committed pages are what the templates and the records make, and any model has one."""

from pathlib import Path

import pytest

from core.errors import InputError
from records import RESULTS, ROOT
from report import pages
from tests.analysis.recorder import Recorder, score


def test_the_committed_pages_are_what_is_rendered():
    rendered = pages.pages(RESULTS)
    assert rendered.keys() >= {ROOT / "README.md", RESULTS / "tiny" / "README.md"}
    for file, text in rendered.items():
        assert file.read_text() == text, f"{file} is not what `make pages` writes"


def test_a_strangers_model_has_a_page_beside_that_of_the_claims(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path / "records", title="my | *model* <b>", n_hat={})
    for method, share in (("original", 0.0), ("linear-ramp", 1.0)):
        rows = [
            {"length": length, "mean": share, "low": 0, "high": 1, "n": 10}
            for length in (8192, 16384)
        ]
        depths = [row | {"depth": 0.5} for row in rows]
        recorder.add("passkey", method, {"by_length": rows, "by_depth": depths})
        recorder.add("perplexity_of_code", method, {"bits per byte": score(0.8 + share, 0.1)})
    stranger = recorder.results().folder
    figure = stranger.parent / "figures" / "mine" / "passkey.png"
    figure.parent.mkdir(parents=True)
    figure.write_bytes(b"")
    written = pages.pages(stranger)
    names = [str(file.relative_to(stranger)) for file in written]
    assert names == ["mine/README.md", "claims.md", "claims.csv", "all.csv"]
    text = written[stranger / "mine" / "README.md"]
    assert "\n# my \\| \\*model\\* \\<b\\>" in text
    assert "linear-ramp" in text.lower() and "10/10" in text
    assert "0.8 [0.7, 0.9]" in text  # a benchmark that has no table of its own
    assert "](../../figures/mine/passkey.png)" in text
    assert "disturbance.png" not in text  # which was not rendered
    monkeypatch.chdir(stranger.parent)
    assert pages.pages(Path(stranger.name)) == written


def test_no_page_with_an_empty_link_or_a_false_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("[there]({{ target }}) {% do holds(right, 'all is well') %}")
    assert "[there](x)" in pages._render("a.md", {"target": "x", "right": True}, tmp_path)
    for names, refusal in (
        ({"target": "", "right": True}, "nowhere"),
        ({"target": "x", "right": False}, "no longer"),
    ):
        with pytest.raises(InputError, match=refusal):
            pages._render("a.md", names, tmp_path)
