"""The pages of what is beyond the paper, and the numbers that only they have."""

import numpy as np

from analysis import results
from experiments.kit.records import RESULTS
from report import pages
from report.beyond.model_view import losses, ranked
from report.model_view import View
from tests.analysis.recorder import Recorder, score


def test_methods_are_ranked_by_their_mean_loss_beyond_the_context_length():
    view = View(results.Results.of("smollm2"), RESULTS / "smollm2" / "beyond", beyond=True)
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
    assert list(pages.pages(folder, "mine")) == [folder / "mine" / "README.md"]
    recorder.everything("pi")
    folder = recorder.results().folder
    written = pages.pages(folder, "mine")
    assert "](beyond/README.md" in written[folder / "mine" / "README.md"]
    assert folder / "mine" / "beyond" / "README.md" in written
