"""The committed pages are what the templates and the records make, and any model has one."""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from core.errors import InputError
from records import RESULTS, ROOT
from report import pages, sentences
from tests.analysis.recorder import Recorder, score
from tests.files import read, write_record


def test_the_committed_pages_are_what_is_rendered():
    rendered = pages.pages(RESULTS)
    assert rendered.keys() >= {ROOT / "README.md", RESULTS / "tiny/README.md"}
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
    assert "Its RoPE rotates 32 dimensions of a head, has the base 1,000,000, and it was" in text


# A page, a quotation of it, and what is left where the records do not bear out its sentence.
LEFT_OUT = [
    ("One is. Two\nis, at 1.5.\nThree is.\n", "Two is", "One is. Three is.\n"),
    ("- **One is.** Two.\n- Three is\n  so.\n", "One", "- Two.\n- Three is\n  so.\n"),
    ("Of:\n\n- **One is.** Two.\n- Three.\n", "One is", "Of:\n\n- Two.\n- Three.\n"),
    ("Of:\n\n- One\n  is. Two.\n- Three.\n", "One is. Two", "Of:\n\n- Three.\n"),
    ("- One is.\n- Two is\n  so.\n\nThree.\n", "Two is so", "- One is.\n\nThree.\n"),
    ("Of two:\n\n| a |\n| - |\n\nOne is.\n", "One", "Of two:\n\n| a |\n| - |\n\n\n"),
    ("| a |\n| - |\n| One. Two |\n| so |\n\nx\n", "One", "| a |\n| - |\n| so |\n\nx\n"),
    ("| a |\n| - |\n| so |\n| One |", "One", "| a |\n| - |\n| so |\n"),
]


@pytest.mark.parametrize("text, words, left", LEFT_OUT)
def test_a_sentence_that_the_records_do_not_bear_out_is_refused_or_left_out_and_named(
    tmp_path, capsys, monkeypatch, text, words, left
):
    page = tmp_path / "README.md"
    templates = tmp_path / "report/templates"
    templates.mkdir(parents=True)
    (templates / "tiny.md").write_text(text)
    monkeypatch.setattr(sentences, "FOLDERS", [templates])

    def borne_out(strict, holds, quoted=words):
        return sentences.borne_out(text, [(quoted, holds)], page, strict)

    assert borne_out(strict=True, holds=True) == text
    assert borne_out(strict=False, holds=False) == left
    named = capsys.readouterr().err
    at = os.path.relpath(page)
    assert at in named and words in named and "report/templates/tiny.md" in named
    with pytest.raises(InputError, match=f"(?s){at}.*{words}.*report/templates/tiny.md"):
        borne_out(strict=True, holds=False)
    with pytest.raises(InputError, match="has no sentence"):
        borne_out(strict=False, holds=True, quoted="No one")
    text = f"{text}\n{text}"
    with pytest.raises(InputError, match="has 2 places"):
        borne_out(strict=False, holds=True)


@pytest.fixture
def copied(tmp_path):
    """A copy of SmolLM2's records of perplexity in which YaRN loses more than DPRoPE."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS / "smollm2", folder / "smollm2")
    file = folder / "smollm2/perplexity/yarn_s=2_whole.json"
    record = read(file)
    for window in record["scores"]["by_window"].values():
        window[0] *= 1.2
    write_record(file, record)
    return folder


def test_on_a_copy_the_page_has_the_sentences_that_are_still_true(copied, capsys):
    file = copied / "smollm2/README.md"
    text = pages.pages(copied, "smollm2")[file]
    committed = (RESULTS / "smollm2/README.md").read_text()
    gone = "YaRN has less perplexity than DPRoPE in each setting"
    kept = "DPRoPE at t = 0 has more perplexity than at the paper's n̂"
    assert gone in committed and gone not in text and gone in capsys.readouterr().err
    assert kept in text and kept in committed
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)#]+)", text)]
    dead = [link for link in links if not (file.parent / unquote(link)).exists()]
    assert dead == []


def test_where_runs_are_missing_the_page_has_no_words_of_the_committed_ones(copied, capsys):
    (copied / "smollm2/perplexity/yarn_s=2_whole.json").unlink()
    text = pages.pages(copied, "smollm2")[copied / "smollm2/README.md"]
    assert "from report/templates/model.md" in text
    assert not capsys.readouterr().err
