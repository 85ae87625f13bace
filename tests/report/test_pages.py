"""The committed pages are what the templates and the records make, and any model has one."""

import os
import shutil
from pathlib import Path

import pytest

from core.errors import InputError
from records import RESULTS, ROOT
from report import pages, sentences
from tests.analysis.recorder import Recorder, of_passkeys, score
from tests.files import read, write_record


def test_the_committed_pages_are_what_is_rendered():
    rendered = pages.pages(RESULTS)
    assert rendered.keys() >= {ROOT / "README.md", RESULTS / "tiny/README.md"}
    for file, text in rendered.items():
        assert file.read_text() == text, f"{file} is not what `make pages` writes"


def test_a_strangers_model_has_a_page_beside_that_of_the_claims(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path / "records", title="my | *model* <b>", n_hat={})
    for method, share in (("original", 0.0), ("linear-ramp", 1.0)):
        recorder.add("passkey", method, of_passkeys({8192: share, 16384: share}, 10))
        recorder.add("perplexity_of_code", method, {"bits per byte": score(0.8 + share, 0.1)})
    stranger = recorder.results().folder
    figure = stranger.parent / "figures/mine/passkey.png"
    figure.parent.mkdir(parents=True)
    figure.write_bytes(b"")
    written = pages.pages(stranger)
    names = [str(file.relative_to(stranger)) for file in written]
    assert names == ["mine/README.md", "claims.md", "claims.csv", "all.csv"]
    text = written[stranger / "mine/README.md"]
    assert "\n# my \\| \\*model\\* \\<b\\>" in text
    assert "linear-ramp" in text.lower() and "10/10" in text
    assert "0.8 [0.7, 0.9]" in text  # a benchmark that has no table of its own
    assert "](../../figures/mine/passkey.png)" in text
    assert "disturbance.png" not in text  # which was not rendered
    monkeypatch.chdir(stranger.parent)
    assert pages.pages(Path(stranger.name)) == written


def test_the_page_of_a_model_that_rotates_a_part_of_its_heads_says_how_many_dimensions(tmp_path):
    geometry = {"head_dim": 32, "base": 1e6, "context_length": 8192}
    folder = Recorder(tmp_path, geometry=geometry).results().folder
    text = pages.pages(folder)[folder / "mine/README.md"]
    assert "32 dimensions of a head" in text and "1,000,000" in text


def test_words_that_the_records_do_not_bear_out_are_refused_with_their_template(
    tmp_path, monkeypatch
):
    text = "One is. Two\nis, at 1.5.\n"
    templates = tmp_path / "report/templates"
    templates.mkdir(parents=True)
    (templates / "tiny.md").write_text(text)
    monkeypatch.setattr(sentences, "FOLDERS", [templates])
    page = tmp_path / "README.md"
    sentences.check(text, [("Two is", True)], page)
    at = os.path.relpath(page)
    with pytest.raises(InputError, match=f"(?s){at}.*Two is.*report/templates/tiny.md"):
        sentences.check(text, [("One is", True), ("Two is", False)], page)
    with pytest.raises(InputError, match="has no sentence"):
        sentences.check(text, [("No one", True)], page)
    with pytest.raises(InputError, match="has 2 places"):
        sentences.check(text, [("is", True)], page)


def test_the_repositorys_words_are_refused_of_other_scores_and_left_out_elsewhere(
    tmp_path, monkeypatch
):
    """Of a copy of SmolLM2's records of perplexity in which YaRN loses more than DPRoPE."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS / "smollm2", folder / "smollm2")
    file = folder / "smollm2/perplexity/yarn_s=2_whole.json"
    record = read(file)
    for window in record["scores"]["by_window"].values():
        window[0] *= 1.2
    write_record(file, record)
    text = pages.pages(folder, "smollm2")[folder / "smollm2/README.md"]
    assert "from report/templates/model.md" in text
    monkeypatch.setattr(pages, "RESULTS", folder)
    with pytest.raises(InputError, match="YaRN has less perplexity than DPRoPE in each setting"):
        pages.pages(folder, "smollm2")
