"""Keys in books: means by hand and by pandas and SciPy, and what is paired with what."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.beyond import books, needles
from core.errors import InputError

FOUR = (12000, 9000, 5000, 1000)  # two beyond L, which is 8192


def drawn(seed, books=6):
    rng = np.random.default_rng(seed)
    titles = [f"Book {number}" for number in range(books)]
    nats = {title: rng.normal(8, 2, 4).tolist() for title in titles}
    return nats, {title: (rng.random(4) < 0.5).tolist() for title in titles}


def rows(recorder):
    sets = books.sets(recorder.results(), "needles")
    return {row.setting.name: row for rows in sets for row in rows.rows}


def test_means_gaps_and_counts_are_those_of_pandas_and_scipy(recorder):
    nats = {}
    for seed, method in enumerate(("yarn", "pi")):
        of_books, found = drawn(seed)
        recorder.keys(method, of_books, FOUR, found)
        nats[method] = pd.DataFrame(of_books)
    of = rows(recorder)
    apart = nats["pi"] - nats["yarn"]
    beyond, within = apart[:2].mean(), apart[2:].mean()
    gaps = {"beyond L": beyond, "within L": within, "beyond minus within": beyond - within}
    for where, values in gaps.items():
        gap = needles.gap(of["PI"], of["YaRN"], where)
        expected = (values.mean(), *stats.ttest_1samp(values, 0).confidence_interval())
        assert (gap.mean, gap.low, gap.high) == pytest.approx(expected)
    for where, side in (("beyond L", slice(2)), ("within L", slice(2, 4))):
        mean = nats["pi"][side].to_numpy().mean()
        assert needles.level(of["PI"], where).mean == pytest.approx(mean)
        count = pd.DataFrame(found)[side].to_numpy().sum()
        assert needles.found(of["PI"], where) == (count, 12)
    run = of["PI"].first
    assert needles.distances(run).tolist() == [*FOUR]
    assert needles.by_distance(run) == pytest.approx(nats["pi"].mean(axis=1))


def test_parts_of_a_book_are_one_book(recorder):
    nats = {"A, part 1": [8, 8, 1, 1], "A, part 2": [4, 4, 3, 3], "B": [2, 2, 2, 2]}
    recorder.keys("yarn", nats, FOUR)
    (row,) = rows(recorder).values()
    assert needles.level(row, "beyond L").texts == (6, 2)
    assert needles.level(row, "within L").texts == (2, 2)


def test_keys_of_other_books_are_not_compared(recorder):
    for method, count in (("yarn", 6), ("pi", 5)):
        recorder.keys(method, drawn(0, count)[0], FOUR)
    of = rows(recorder)
    with pytest.raises(InputError, match="differ in data"):
        needles.gap(of["PI"], of["YaRN"])


def test_where_no_key_lies_beyond_l_there_is_no_number_of_it(recorder):
    for seed, method in enumerate(("yarn", "pi")):
        recorder.keys(method, drawn(seed)[0], (5000, 4000, 3000, 1000))
    of = rows(recorder)
    assert needles.level(of["PI"], "beyond L") is needles.gap(of["PI"], of["YaRN"]) is None
    assert needles.gap(of["PI"], of["YaRN"], "within L").n == 6
    assert not needles.samples(recorder.results(), 2.0, trained=False)
