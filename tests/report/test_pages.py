"""The committed pages are what the templates and the records make, and any model has one."""

import json

import pytest

from analysis import results
from experiments.kit.records import RESULTS, ROOT
from report import model_view, pages
from tests.report.conftest import score


@pytest.fixture(scope="module")
def rendered():
    return pages.pages(RESULTS)


def test_the_committed_pages_are_what_is_rendered(rendered):
    assert {ROOT / "README.md", *(RESULTS / model / "README.md" for model in results.models())} <= rendered.keys()
    for file, text in rendered.items():
        assert file.read_text() == text, f"{file} is not what `make pages` writes"


HOSTILE = "my | *model* <b>"


@pytest.fixture
def stranger(folder):
    folder.scale("mine", title=HOSTILE, n_hat={})
    for method, found in (("original", 0.0), ("linear-ramp", 1.0)):
        rows = [{"length": length, "mean": found, "low": 0, "high": 1, "n": 10} for length in (8192, 16384)]
        depths = [row | {"depth": 0.5} for row in rows]
        folder.save("passkey", "mine", method=method, scores={"by_length": rows, "by_depth": depths})
        folder.save("perplexity_of_code", "mine", method=method, scores={"bits per byte": score(0.8 + found, 0.1)})
    return folder.path


def test_a_strangers_model_has_a_page_beside_that_of_the_claims(stranger):
    (file, text), *claims = pages.pages(stranger).items()
    assert file == stranger / "mine" / "README.md"
    assert [file for file, _ in claims] == [stranger / "claims.md", stranger / "claims.csv"]
    assert text.startswith("# my \\| \\*model\\* \\<b\\>")
    assert "linear-ramp" in text.lower() and "10/10" in text.replace(" of ", "/")
    assert "0.8 [0.7, 0.9]" in text  # a benchmark that has no table of its own
    assert "](" not in text  # no figure was rendered


def test_a_figure_that_was_rendered_is_linked(stranger):
    figure = stranger.parent / "figures" / "mine" / "passkey.png"
    figure.parent.mkdir(parents=True)
    figure.write_bytes(b"")
    ((_, text),) = pages.pages(stranger, "mine").items()
    assert "](../../figures/mine/passkey.png)" in text


def test_records_of_another_folder_have_a_page_without_the_prose_about_ours(folder):
    folder.copy("tiny", "passkey")
    ((_, text),) = pages.pages(folder.path, "tiny").items()
    assert "28 of 30" in text.replace("/", " of ") and "trained here" not in text


def test_numbers_of_a_page_are_those_of_the_records():
    view = model_view.View(results.Results.of("smollm2"), RESULTS / "smollm2")
    assert view.found("YaRN", 16384) == "1 of 3"
    means = {}
    for file in (RESULTS / "smollm2" / "disturbance").glob("*_s=2.json"):
        (row,) = (row for row in json.loads(file.read_text())["scores"]
                  if (row["precision"], row["convention"]) == ("float64", "released"))  # fmt: skip
        means[file.stem] = 1000 * row["average"]
    assert view.disturbance("DPRoPE (t = 0)", 2) == means["dprope_s=2"]
    assert view.disturbance("DPRoPE (the paper's n̂)", 2) == means["dprope_n-hat=40_s=2"]
