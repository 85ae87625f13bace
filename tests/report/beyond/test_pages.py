"""The pages of what is beyond the paper, and the numbers that only they have."""

import json

import pytest

from analysis import results
from experiments.kit import records
from experiments.kit.records import RESULTS
from report import pages
from report.beyond.model_view import View
from tests.report.conftest import folder, score  # noqa: F401  (a fixture)


@pytest.fixture(scope="module")
def view():
    return View(results.Results.of("smollm2"), RESULTS / "smollm2" / "beyond")


def beyond(record):
    """The mean loss of all positions beyond L, from a record's ranges."""
    spans = record["ranges"][1:]
    return sum(span["mean"] * span["n"] for span in spans) / sum(span["n"] for span in spans)


def test_numbers_of_a_page_are_those_of_the_records(view):
    folder = records.folder(RESULTS, "smollm2", "loss_by_position")
    losses = [
        beyond(json.loads((folder / f"{name}_s=2_books=3.json").read_text())) for name in ("dprope_n-hat=28", "yarn")
    ]
    assert view.loss("DPRoPE (n̂ = 28)").mean == pytest.approx(losses[0] - losses[1], abs=1e-5)


def test_methods_are_ranked_by_their_mean_loss_beyond_the_context_length(view):
    ranked = [name for name, _ in view.ranked()]
    means = {name: beyond(view.row("loss_by_position", name).first) for name in ranked}
    assert ranked == sorted(means, key=means.get) and {"original", "YaRN", "DPRoPE (t = 0)"} <= means.keys()
    assert "DPRoPE (n̂ = 40)" in ranked and "DPRoPE (n̂ = 28)" not in ranked  # the paper's; an ablation's


def test_what_was_measured_again_is_near_the_first_record(view):
    assert 0 < view.remeasured("on_gpu") < 1e-3 and 0 < view.relearned("on_gpu") < 0.1
    assert view.repeated("first_run").keys() == {False, True} and view.repeated("third_run").keys() == {True}


def test_a_model_has_the_page_if_it_has_records_beyond_the_paper(folder):
    folder.ruler("pi", {8192: 40}, model="mine")
    assert list(pages.pages(folder.path, "mine")) == [folder.path / "mine" / "README.md"]
    folder.save("selections", "mine", scores=[{"interpolated_pairs": [1], "beyond": score(1)}])
    first, second = pages.pages(folder.path, "mine").items()
    assert second[0] == folder.path / "mine" / "beyond" / "README.md"
    assert "](beyond/README.md" in first[1] and "`selections`" in second[1] and "`selections`" not in first[1]
    assert "`ruler`" in first[1] and "`ruler`" not in second[1]
