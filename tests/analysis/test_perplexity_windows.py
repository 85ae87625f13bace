"""Losses in windows: hand-made records, and the sums that a real one holds beside them."""

import numpy as np
import pytest
from scipy import stats

from analysis import perplexity_windows
from analysis.results import Results
from core import rope


def test_positions_past_a_texts_end_are_missing_and_windows_in_order():
    """Windows of 16k that begin 8k apart, in buckets of 4096 positions; B ends within the third bucket of its last."""
    by_position = {
        "B/16384/8192": [2.5, 9.5, 7.0],
        "B/16384/0": [0.0, 1.0, 2.0, 9.0],
        "A/8192/0": [50.0, 50.0],
        "A/16384/0": [1.0, 2.0, 3.0, 4.0],
    }
    losses = np.array(list(perplexity_windows.windows({"lengths": [8192, 16384], "by_position": by_position}).values()))
    np.testing.assert_array_equal(losses, [[1, 2, 3, 4], [0, 1, 2, 9], [2.5, 9.5, np.nan, np.nan]])


@pytest.mark.parametrize("texts", [3, 8])
def test_an_average_is_over_texts_however_long_they_are(texts):
    rng = np.random.default_rng(0)
    values = {str(text): rng.normal(2.0 + text / 10, 0.3, (1, 4 + 3 * text, 8)) for text in range(texts)}
    values["0"][:, -1, 2:] = np.nan
    found = perplexity_windows.average(values, slice(1, 6))
    means = [np.nanmean(of[:, :, 1:6]) for of in values.values()]
    low, high = stats.t.interval(0.95, texts - 1, np.mean(means), stats.sem(means))
    assert found.mean == pytest.approx(np.mean(means)) and found.texts == pytest.approx(means)
    assert (found.low, found.high) == ((None, None) if texts < 5 else pytest.approx((low, high)))


def test_positions_beyond_the_first_half_are_what_the_windows_score():
    """A record holds each window's scored sum beside its losses by position: the same tokens, counted apart."""
    checked = 0
    for run in Results.of("smollm2").records("perplexity"):
        if run["tokens"] is None and run["method"] in (rope.RIVAL, rope.OURS):
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
