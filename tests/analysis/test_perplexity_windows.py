"""Losses in windows: hand-made records, and the sums that a real one holds beside them."""

import numpy as np
import pytest

from analysis import perplexity_windows
from analysis.results import Results
from core import rope
from tests.analysis.made import paired_bootstrap


def test_positions_past_a_texts_end_are_missing_and_windows_in_order():
    """Windows of 16k that begin 8k apart, in buckets of 4096 positions; B ends within the third bucket of its last."""
    by_position = {
        "B/16384/8192": [2.5, 9.5, 7.0],
        "B/16384/0": [0.0, 1.0, 2.0, 9.0],
        "A/8192/0": [50.0, 50.0],
        "A/16384/0": [1.0, 2.0, 3.0, 4.0],
    }
    losses = perplexity_windows.losses({"lengths": [8192, 16384], "by_position": by_position})
    np.testing.assert_array_equal(losses, [[1, 2, 3, 4], [0, 1, 2, 9], [2.5, 9.5, np.nan, np.nan]])


def test_an_interval_over_windows_follows_their_spread_and_weighs_them_by_length():
    rng = np.random.default_rng(0)
    values = rng.normal(2.0, 0.3, (400, 1)) + rng.normal(0, 0.01, (400, 8))  # what differs, differs by window
    found = perplexity_windows.average(values)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * values.mean(axis=1).std() / 20, rel=0.1)
    assert (found.low, found.high) == pytest.approx(paired_bootstrap(values.mean(axis=1), resamples=4000), abs=0.004)
    values[1:, 2:] = np.nan
    assert perplexity_windows.average(values).mean == pytest.approx(np.nanmean(values))


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
