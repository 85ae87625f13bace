"""The pages of what is beyond the paper, and the numbers that only they have."""

import json

import pytest

from analysis import results
from experiments.kit import records
from experiments.kit.records import RESULTS
from report import pages
from report.beyond.model_view import View
from tests.analysis.recorder import Recorder, score


@pytest.fixture(scope="module")
def view():
    return View(results.Results.of("smollm2"), RESULTS / "smollm2" / "beyond")


def beyond(record):
    """The mean loss of all positions beyond L, from a record's ranges."""
    spans = record["ranges"][1:]
    return sum(span["mean"] * span["n"] for span in spans) / sum(span["n"] for span in spans)


def test_numbers_of_a_page_are_those_of_the_records(view):
    files = records.folder(RESULTS, "smollm2", "loss_by_position")
    runs = [
        json.loads((files / f"{name}_s=2_books=3.json").read_text())["scores"]
        for name in ("dprope_n-hat=28", "yarn")
    ]
    assert view.loss("DPRoPE (n̂ = 28)").mean == pytest.approx(
        beyond(runs[0]) - beyond(runs[1]), abs=1e-5
    )
    within = runs[0]["ranges"][0]["mean"] - runs[1]["ranges"][0]["mean"]
    assert view.loss("DPRoPE (n̂ = 28)", where="within L").mean == pytest.approx(within, abs=1e-5)


def test_methods_are_ranked_by_their_mean_loss_beyond_the_context_length(view):
    ranked = [name for name, _ in view.ranked()]
    means = {name: beyond(view.row("loss_by_position", name).first.scores) for name in ranked}
    assert (
        ranked == sorted(means, key=means.get)
        and {"original", "YaRN", "DPRoPE (t = 0)"} <= means.keys()
    )
    assert (
        "DPRoPE (n̂ = 40)" in ranked and "DPRoPE (n̂ = 28)" not in ranked
    )  # the paper's; an ablation's


def test_a_model_has_the_page_if_it_has_records_beyond_the_paper(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.add("perplexity_of_code", "pi", {"bits per byte": score(1)})
    folder = recorder.results().folder
    assert list(pages.pages(folder, "mine")) == [folder / "mine" / "README.md"]
    recorder.everything("pi")
    folder = recorder.results().folder
    first, second = pages.pages(folder, "mine").items()
    assert (
        second[0] == folder / "mine" / "beyond" / "README.md" and "](beyond/README.md" in first[1]
    )
