"""Loss by position over whole texts: hand-made records, and the sums that a real one holds beside it."""

import json

import numpy as np
import pytest

from experiments import records
from experiments.records import RESULTS
from figures import whole_texts as figure
from tables import whole_texts

# Windows of 16k that begin 8k apart, in buckets of 4096 positions; B ends within the third bucket of its last.
PLAIN = {
    "A/16384/0": [1.0, 2.0, 3.0, 4.0],
    "A/16384/8192": [3.5, 4.0, 5.0, 6.0],
    "B/16384/0": [0.0, 1.0, 2.0, 9.0],
    "B/16384/8192": [2.5, 9.5, 7.0],
    "A/8192/0": [50.0, 50.0],
}
LONGEST = list(PLAIN)[:4]
MISSING = np.nan


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "smollm2" / "perplexity"
    folder.mkdir(parents=True)
    shared = {"factor": 2, "tokens": None, "lengths": [8192, 16384], "stride": [4096, 8192], "bucket": 4096}

    def write(name, method, options=None, more=0.0, **extra):
        by_position = {key: [value + more * (i >= 2) for i, value in enumerate(row)] for key, row in PLAIN.items()}
        record = shared | {"method": method, "options": options or {}, "data": {"A": "a", "B": "b"}}
        (folder / f"{name}.json").write_text(json.dumps(record | {"by_position": by_position} | extra))

    write("yarn", "yarn")
    write("pi", "pi", more=0.25)
    write("ntk", "ntk", tokens=20480)
    write("twin", "dprope", {"n_hat": 30}, same_selection_as="another")
    return tmp_path


def test_positions_past_a_texts_end_are_missing_and_windows_in_order(results):
    (pi, yarn) = whole_texts.runs(results, "smollm2", trained=False)
    assert (pi["method"], yarn["method"]) == ("pi", "yarn") and whole_texts.reference([pi, yarn]) is yarn
    expected = [*(PLAIN[key] for key in LONGEST[:3]), [2.5, 9.5, MISSING, MISSING]]
    np.testing.assert_array_equal(whole_texts.losses(yarn), expected)
    shuffled = yarn | {"by_position": dict(reversed(yarn["by_position"].items()))}
    np.testing.assert_array_equal(whole_texts.losses(shuffled), expected)


def test_averages_differences_and_what_more_context_gives(results):
    pi, yarn = whole_texts.runs(results, "smollm2", trained=False)
    own = whole_texts.scores(yarn, yarn, 8192)
    # Within L the first two buckets of four windows; beyond, three windows reach.
    means = {"within $L$": (3 + 7.5 + 1 + 12) / 8, "beyond $L$": (7 + 11 + 11) / 6}
    assert {name: own[name]["mean"] for name in means} == pytest.approx(means)
    assert (own["within $L$"]["n"], own["beyond $L$"]["n"]) == (4, 3)
    assert own[r"$\Delta$ within $L$"] is own[r"$\Delta$ beyond $L$"] is None
    # In A [3, 4] against [3.5, 4.0], in B [2, 9] against [2.5, 9.5]; the first bucket aside: 0 and -0.5.
    np.testing.assert_array_equal(whole_texts.more_context(yarn), [[-0.5, 0.0], [-0.5, -0.5]])
    assert own["8k more before"] == {"mean": -0.25, "low": -0.5, "high": 0.0, "n": 2}

    other = whole_texts.scores(pi, yarn, 8192)
    assert other[r"$\Delta$ within $L$"] == {"mean": 0, "low": 0, "high": 0, "n": 4}
    assert other[r"$\Delta$ beyond $L$"] == {"mean": 0.25, "low": 0.25, "high": 0.25, "n": 3}
    assert other["8k more before"]["mean"] == 0.0  # its 16k windows lose a quarter where they are beyond L


def test_an_interval_over_windows_follows_their_spread_and_weighs_them_by_length():
    rng = np.random.default_rng(0)
    values = rng.normal(2.0, 0.3, (400, 1)) + rng.normal(0, 0.01, (400, 8))  # what differs, differs by window
    found = whole_texts.average(values)
    assert (found["high"] - found["low"]) / 2 == pytest.approx(1.96 * values.mean(axis=1).std() / 20, rel=0.1)
    values[1:, 2:] = np.nan
    assert whole_texts.average(values)["mean"] == pytest.approx(np.nanmean(values))


def test_table_and_figure_show_the_records_or_that_there_are_none(results):
    tex = whole_texts.build(results, "smollm2")
    assert r"2 texts, $s=2$, without training, 4 windows of 16k" in tex and "fine-tuned" not in tex
    assert "NTK" not in tex and r"\hat n" not in tex
    (row,) = [line for line in tex.splitlines() if line.startswith("YaRN &")]
    assert row.split(" & ")[3:5] == ["--", "--"] and "no record" not in tex
    left, right = figure.build(results, "smollm2").axes
    curves = {axes: {line.get_label(): line.get_ydata() for line in axes.lines[:2]} for axes in (left, right)}
    assert curves[left]["YaRN"] == pytest.approx([7 / 4, 16.5 / 4, 10 / 3, 19 / 3])
    assert curves[right]["PI"] == pytest.approx([0, 0, 0.25, 0.25]) and not any(curves[right]["YaRN"])
    assert "No record at this scale." in whole_texts.build(results, "tiny")
    assert [text.get_text() for text in figure.build(results, "tiny").axes[0].texts] == ["no record at this scale"]


def test_positions_beyond_the_first_half_are_what_the_windows_score():
    """A record holds each window's scored sum beside its losses by position: the same tokens, counted apart."""
    for run in records.load(RESULTS, "smollm2", "perplexity"):
        if run["tokens"] is None:
            for key, row in run["by_position"].items():
                title, length, begin = key.rsplit("/", 2)
                total, count = run["by_window"][key]
                if count == int(length) // 2:  # all windows but a text's first and last
                    half = len(row) // 2
                    # The last bucket is one short: a window's first token is not predicted.
                    weights = [1024] * (half - 1) + [1023]
                    first = total - np.dot(row[half:], weights)
                    assert 0 < first < 25, (title, length, begin)  # the one token before it, position L
