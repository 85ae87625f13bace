"""Loss by position over whole texts: hand-made records, and the sums that a real one holds beside them."""

import numpy as np
import pytest
from scipy import stats

from analysis.beyond import whole_texts
from analysis.results import Results
from core import rope

# Windows of 16k that begin 8k apart, in buckets of 4096 positions; B ends within the third bucket of its last.
PLAIN = {
    "A/16384/0": [1.0, 2.0, 3.0, 4.0],
    "A/16384/8192": [3.5, 4.0, 5.0, 6.0],
    "B/16384/0": [0.0, 1.0, 2.0, 9.0],
    "B/16384/8192": [2.5, 9.5, 7.0],
    "A/8192/0": [50.0, 50.0],
}
SHARED = {"tokens": None, "lengths": [8192, 16384], "stride": [4096, 8192], "bucket": 4096, "data": {"A": 1, "B": 2}}


def beyond(more):
    return {key: [value + more * (i >= 2) for i, value in enumerate(row)] for key, row in PLAIN.items()}


@pytest.fixture
def results(made):
    made.add("perplexity", "yarn", by_position=PLAIN, **SHARED)
    made.add("perplexity", "pi", by_position=beyond(0.25), **SHARED)
    made.add("perplexity", "ntk", by_position=PLAIN, **SHARED | {"tokens": 20480})
    made.add("perplexity", "dprope", options={"n_hat": 30}, by_position=PLAIN, same_selection_as="x", **SHARED)
    return made.results()


def test_averages_differences_and_what_more_context_gives(results):
    pi, yarn = whole_texts.runs(results, trained=False).rows
    own = whole_texts.scores(yarn, yarn, 8192)
    # Within L the first two buckets of two windows of each text; beyond, B's second window does not reach.
    texts = {"within L": ((3 + 7.5) / 4, (1 + 12) / 4), "beyond L": ((7 + 11) / 4, 11 / 2)}
    assert {name: own[name].texts for name in texts} == texts
    assert {name: own[name].mean for name in texts} == {name: np.mean(each) for name, each in texts.items()}
    assert own["within L"].low is None
    assert own["Δ within L"] is own["Δ beyond L"] is None
    # In A [3, 4] against [3.5, 4.0], in B [2, 9] against [2.5, 9.5]; the first bucket aside: 0 and -0.5.
    more = own["8k more before"]
    assert (more.mean, more.low, more.texts) == (-0.25, None, (0.0, -0.5)) and whole_texts.more_context(yarn) == more

    other = whole_texts.scores(pi, yarn, 8192)
    assert other["Δ within L"].texts == (0, 0) and other["Δ beyond L"].texts == (0.25, 0.25)
    assert other["8k more before"].mean == 0.0  # its 16k windows lose a quarter where they are beyond L


def test_seeds_are_averaged_before_they_are_compared(made):
    for seed, more in ((0, 0.25), (1, 0.75)):
        made.add("perplexity", "pi", by_position=beyond(more), seed=seed, **SHARED)
    made.add("perplexity", "yarn", by_position=PLAIN, seed=0, **SHARED)
    pi, yarn = whole_texts.runs(made.results(), trained=True).rows
    assert whole_texts.scores(pi, yarn, 8192)["Δ beyond L"].mean == pytest.approx(0.5)


def test_each_factor_has_windows_of_its_own(made):
    made.add("perplexity", "pi", by_position=PLAIN, **SHARED)
    longer = {f"A/32768/{begin}": [1.0] * 8 for begin in (0, 16384)}
    made.add("perplexity", "pi", factor=4, by_position=longer, **SHARED | {"lengths": [32768], "stride": 16384})
    made.add("perplexity", "yarn", [{"length": 16384}], factor=8, tokens=20480, stride=256)
    results = made.results()
    assert whole_texts.measured_factors(results) == [2.0, 4.0]
    (row,) = whole_texts.runs(results, False, 4.0).rows
    assert whole_texts.losses(row)["A"].shape == (1, 2, 8)


def test_positions_past_a_texts_end_are_missing_and_windows_in_order():
    """Windows of 16k that begin 8k apart, in buckets of 4096 positions; B ends within the third bucket of its last."""
    by_position = {
        "B/16384/8192": [2.5, 9.5, 7.0],
        "B/16384/0": [0.0, 1.0, 2.0, 9.0],
        "A/8192/0": [50.0, 50.0],
        "A/16384/0": [1.0, 2.0, 3.0, 4.0],
    }
    losses = np.array(list(whole_texts.windows({"lengths": [8192, 16384], "by_position": by_position}).values()))
    np.testing.assert_array_equal(losses, [[1, 2, 3, 4], [0, 1, 2, 9], [2.5, 9.5, np.nan, np.nan]])


@pytest.mark.parametrize("texts", [3, 8])
def test_an_average_is_over_texts_however_long_they_are(texts):
    rng = np.random.default_rng(0)
    values = {str(text): rng.normal(2.0 + text / 10, 0.3, (1, 4 + 3 * text, 8)) for text in range(texts)}
    values["0"][:, -1, 2:] = np.nan
    found = whole_texts.average(values, slice(1, 6))
    means = [np.nanmean(of[:, :, 1:6]) for of in values.values()]
    low, high = stats.t.interval(0.95, texts - 1, np.mean(means), stats.sem(means))
    assert found.mean == pytest.approx(np.mean(means)) and found.texts == pytest.approx(means)
    assert (found.low, found.high) == ((None, None) if texts < 5 else pytest.approx((low, high)))


def test_positions_beyond_the_first_half_are_what_the_windows_score():
    """A record holds each window's scored sum beside its losses by position: the same tokens, counted apart."""
    checked = 0
    for run in Results.of("smollm2").records("perplexity"):
        if run["tokens"] is None and run["method"] in (rope.BASELINE, rope.PROPOSED):
            for key, row in run["by_position"].items():
                title, length, begin = key.rsplit("/", 2)
                total, count = run["by_window"][key]
                if count == int(length) // 2:  # all windows but a text's first and last
                    half = len(row) // 2
                    # The last bucket is one short: a window's first token is not predicted.
                    weights = [1024] * (half - 1) + [1023]
                    first = total - np.dot(row[half:], weights)
                    assert 0 < first < 25, (title, length, begin)  # the one token before it, position L
                    checked += 1
    assert checked > 100
