"""The pages of what is beyond the paper, and the numbers that only they have."""

import re
import shutil

import numpy as np
import pytest
from scipy import stats

from analysis import results
from analysis.beyond import books, loss_by_position
from core.errors import InputError
from records import RESULTS
from report import pages
from report.beyond.model_view import OnBooks, losses, ranked
from report.model_view import View
from tests.analysis.recorder import LENGTH, Recorder, score
from tests.files import read, write_record


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


# The settings of a generated second round: how its records begin, what each loses more than that
# round's YaRN, on each block and on each key, and its name.
SECOND = [
    ("yarn", "yarn", {}, 0.0, "YaRN"),
    ("dprope_n-hat=40", "dprope", {"n_hat": 40}, 0.25, "DPRoPE (n̂ = 40)"),
    ("dprope", "dprope", {}, 0.5, "DPRoPE (t = 0)"),
    ("original", "original", {}, 1.5, "original"),
]


@pytest.fixture
def with_second_round(tmp_path):
    """SmolLM2's records, with such of three fine-tunes of the second round whose scores are made of
    YaRN's."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS / "smollm2", folder / "smollm2")
    beyond = folder / "smollm2/beyond"
    losses = beyond / "loss_by_position/yarn_s=2_seed=1_books=20.json"
    keys = beyond / "needles/yarn_s=2_seed=1_books=20.json"
    training = folder / "smollm2/finetune/yarn_s=2_seed=1.json"

    def of_another(file, begin, method, options):
        """The record of a fine-tune, with the scores of YaRN's."""
        record = read(file)
        made = file.with_name(file.name.replace("yarn", begin))
        if made.is_file():
            record["run"] = read(made)["run"]
        else:
            record["run"] |= {"method": method, "options": options}
            record["run"].pop("scaling", None)
        return made, record

    for begin, method, options, more, _ in SECOND[1:]:
        for file in (losses, keys):
            made, record = of_another(file, begin, method, options)
            for values in record["scores"].get("blocks", {}).values():
                values[:] = [value + more for value in values]
            for of_book in record["scores"].get("keys", {}).values():
                for key in of_book:
                    key["nats"] += more
            write_record(made, record)
    for begin, method, options, *_ in SECOND[1:3]:
        write_record(*of_another(training, begin, method, options))
    return folder


def test_a_second_round_has_a_table_and_changes_nothing_of_the_first(
    with_second_round, monkeypatch
):
    folder = with_second_round
    monkeypatch.setattr(pages, "RESULTS", folder)
    with pytest.raises(InputError, match="have been scored at seed 1"):
        pages.pages(folder, "smollm2")
    monkeypatch.setattr(pages, "check", lambda *_: None)
    text = pages.pages(folder, "smollm2")[folder / "smollm2/beyond/README.md"]
    committed = (RESULTS / "smollm2/beyond/README.md").read_text()
    first, second = (
        page.partition("## Fine-tuned at L'")[2].partition("### The second round")
        for page in (text, committed)
    )
    numbers = [re.findall(r"[+−]?\d+\.\d+|\d+", section[0]) for section in (first, second)]
    assert numbers[0] == numbers[1] != []
    section = first[2].partition("All numbers:\n")[2]
    section = section.partition("\nTraining losses on the same sequences")[0]
    lines = [line.strip("|").split("|") for line in section.splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in cells] for cells in lines]
    for digits, of_table in ((3, rows[: len(rows) // 2]), (2, rows[len(rows) // 2 :])):
        header, _, *settings = of_table
        assert header[1] == "seeds"
        shown = {row[0]: row[1:] for row in settings}
        assert shown.keys() - {"original, last 8k"} == {name for *_, name in SECOND}
        for *_, more, name in SECOND:
            seeds, *_, within, beyond, change, _, _ = shown[name]
            assert seeds == "1"
            if more:
                assert [within, beyond] == [
                    f"+{more:.{digits}f} [{more:.{digits}f}, {more:.{digits}f}]"
                ] * 2
                assert float(change.split()[0].lstrip("+−")) == 0
    # These keys are fine-tuned YaRN's, and so much more.
    apart = re.search(r"as they are published +\| +(\S+) [^|]+\| +(\S+) ", committed)
    ours, yarns = (
        [float(cell.split()[0].replace("−", "-")) for cell in shown[name][-2:]]
        for name in ("DPRoPE (n̂ = 40)", "YaRN")
    )
    expected = [change + 0.25 - float(gap) for change, gap in zip(yarns, apart.groups())]
    assert ours == pytest.approx(expected, abs=0.02)
