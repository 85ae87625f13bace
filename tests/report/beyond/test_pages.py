"""The pages of what is beyond the paper, and the numbers that only they have."""

import numpy as np
import pytest
from scipy import stats

from analysis import results
from analysis.beyond import books, loss_by_position
from records import RESULTS
from report import pages
from report.beyond.model_view import OnBooks, losses, ranked
from report.model_view import View
from tests.analysis.recorder import LENGTH, Recorder, score


def test_methods_are_ranked_by_their_mean_loss_beyond_the_context_length():
    view = View(results.Results.of("smollm2"), RESULTS / "smollm2/beyond", beyond=True)
    means = []
    for name, _ in ranked(view):
        spans = losses(view).row(name).first.scores["ranges"][1:]
        of_spans = [span["mean"] for span in spans]
        means.append(np.average(of_spans, weights=[span["n"] for span in spans]))
    assert means == sorted(means)
    names = [name for name, _ in ranked(view)]
    assert {"original", "YaRN", "DPRoPE (t = 0)", "DPRoPE (n̂ = 40)"} <= {*names}
    assert "DPRoPE (n̂ = 28)" not in names  # an ablation's


def test_a_model_has_the_page_if_it_has_records_beyond_the_paper(tmp_path):
    recorder = Recorder(tmp_path)
    recorder.add("perplexity_of_code", "pi", {"bits per byte": score(1)})
    folder = recorder.results().folder
    assert list(pages.pages(folder, "mine")) == [folder / "mine/README.md"]
    recorder.everything("pi")
    folder = recorder.results().folder
    written = pages.pages(folder, "mine")
    assert "](beyond/README.md" in written[folder / "mine/README.md"]
    assert folder / "mine/beyond/README.md" in written


def test_methods_are_ranked_at_the_least_factor_that_has_yarns_losses_without_training(tmp_path):
    """At a lesser one there are a fine-tune and the model as it is alone."""
    recorder = Recorder(tmp_path)
    for method, factor, seed in (
        ("yarn", 2, 0),
        ("original", 2, None),
        ("yarn", 4, None),
        ("pi", 4, None),
    ):
        ends = [{"start": 0, "end": LENGTH}, {"start": LENGTH, "end": factor * LENGTH}]
        place = {"block": LENGTH, "blocks": {"A Book": [3.0] * factor}, "ranges": ends}
        recorder.add("loss_by_position", method, place, factor, seed=seed, length=factor * LENGTH)
    folder = recorder.results().folder
    text = pages.pages(folder, "mine")[folder / "mine/beyond/README.md"]
    assert "Loss beyond L without training" in text
    view = View(results.Results.of("mine", folder), folder / "mine/beyond", beyond=True)
    assert [name for name, _ in ranked(view)] == ["PI", "YaRN"]


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_what_training_changed_of_one_setting_more_than_of_another(recorder, seeds):
    """By the differences of each seed and book, and with several seeds of all of them by Welch."""
    rng = np.random.default_rng(0)
    found = {}
    for method, less in (("pi", 3), ("yarn", 1)):
        untrained = rng.normal(9, 1, 6)
        found[method] = rng.normal(-less, 0.5, (len(seeds), 6))
        recorder.losses(method, {f"Book {i}": [loss] * 2 for i, loss in enumerate(untrained)})
        for seed, changes in zip(seeds, found[method], strict=True):
            tuned = enumerate(untrained + changes)
            recorder.losses(method, {f"Book {i}": [loss] * 2 for i, loss in tuned}, seed=seed)
    before, after = (
        OnBooks(loss_by_position, rows)
        for rows in books.sets(recorder.results(), "loss_by_position")
    )
    apart = after.change_apart(before, "PI", "YaRN", books.WITHIN)
    values = found["pi"] - found["yarn"]
    parts = [(values.mean(0).var(ddof=1) / 6, 5)]
    if len(seeds) > 1:
        parts.append((values.mean(1).var(ddof=1) / len(seeds), len(seeds) - 1))
    error = sum(square for square, _ in parts)
    freedom = error**2 / sum(square**2 / of for square, of in parts)
    half = stats.t.ppf(0.975, freedom) * error**0.5
    mean = values.mean()
    assert (apart.mean, apart.low, apart.high) == pytest.approx((mean, mean - half, mean + half))
