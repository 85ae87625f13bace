"""The errors of a difference against ones drawn another way, and what records that hold less leave."""

import numpy as np
import pytest
from scipy import stats

from analysis import row_differences
from analysis.comparison import compared
from analysis.hypothesis_tests import ABOVE, UNDECIDED
from analysis.metrics import log_perplexity, open_llm, ruler
from analysis.scores import over_texts
from core.errors import InputError
from tests.analysis.made import TASKS, on_texts, score

RNG = np.random.default_rng(3)


def documents(made, method, right, seed=None):
    """A record of four benchmarks, each with the same scores 0…1 by document."""
    scores = {name: score(100 * float(np.mean(right)), 5, len(right)) for name in (*TASKS, "average")}
    by_document = {task: [float(each) for each in right] for task in TASKS}
    made.add("open_llm", method, scores, seed=seed, by_document=by_document)


def tasks(made, method, means, width):
    by_task = {"1024": {f"task{index}": score(mean) for index, mean in enumerate(means)}}
    average = score(float(np.mean(means)), width)
    made.add("ruler", method, {"lengths": {"1024": average}, "average": average, "tasks": by_task})


def texts(made, method, gaps, seed=None):
    losses = {f"Book {text}": float(3 + text + gap) for text, gap in enumerate(gaps)}
    made.add("perplexity", method, seed=seed, **on_texts({4096: losses}))


def difference(made, experiment, metrics, metric, trained=False):
    rows = compared(made.results(), experiment, trained)
    return row_differences.between(rows.find("pi"), rows.find("yarn"), experiment, metrics, metric, rows)


def ends(estimate):
    interval = estimate.interval()
    return interval.low, interval.high


def bootstrap(gaps):
    return tuple(stats.bootstrap((gaps,), np.mean, method="percentile", rng=1).confidence_interval)


def test_documents_are_paired(made):
    right = RNG.integers(0, 2, 50)
    other = np.where(RNG.random(50) < 0.2, 1 - right, right)
    documents(made, "pi", right)
    documents(made, "yarn", other)
    one = difference(made, "open_llm", open_llm, "TruthfulQA")
    assert one.mean == pytest.approx(100 * np.mean(right - other)) and (one.samples, one.seeds) == (50, 1)
    assert ends(one) == pytest.approx(bootstrap(100.0 * (right - other)), abs=1.5)
    whole = difference(made, "open_llm", open_llm, "Avg.")  # four benchmarks of the same: half the error
    assert whole.samples == 200 and whole.below == pytest.approx(one.below / 2, rel=0.15)


def test_records_of_different_numbers_of_documents_are_refused(made):
    documents(made, "pi", [1] * 20)
    documents(made, "yarn", [1] * 19)
    with pytest.raises(InputError, match="different numbers of samples"):
        difference(made, "open_llm", open_llm, "TruthfulQA")


def test_without_samples_the_seeds_that_both_have_are_the_error(made):
    for method, means in (("pi", (10, 12, 17, 99)), ("yarn", (9, 10, 14))):
        for seed, mean in enumerate(means):
            made.add("open_llm", method, {"average": score(mean)}, seed=seed)
    gap = difference(made, "open_llm", open_llm, "Avg.", trained=True)
    assert (gap.mean, gap.below, gap.samples, gap.seeds) == (2, 0, None, 3)
    assert ends(gap) == pytest.approx(stats.t.interval(0.95, 2, loc=2, scale=stats.sem([1, 2, 3])))


def test_without_samples_and_seeds_two_intervals_combine(made):
    for method, mean, low, high in (("pi", 10, 7, 12), ("yarn", 4, 3, 8)):
        made.add("open_llm", method, {"average": {"mean": mean, "low": low, "high": high, "n": 9}})
    gap = difference(made, "open_llm", open_llm, "Avg.")
    assert ends(gap) == pytest.approx((6 - 5, 6 + 5**0.5)) and gap.mean == 6  # √(3² + 4²), √(2² + 1²)
    made.records["open_llm/001_yarn.json"]["scores"]["average"] |= {"low": 4, "high": 4}  # one sample
    assert ends(difference(made, "open_llm", open_llm, "Avg.")) == (None, None)


def test_one_seed_takes_the_spread_of_settings_with_several(made):
    for method in ("clex", "dprope", "ntk", "original"):
        for seed in range(40):
            made.add("open_llm", method, {"average": score(50 + 3 * seed + RNG.normal(0, 2.0))}, seed=seed)
    for method, mean in (("pi", 50), ("yarn", 40)):
        made.add("open_llm", method, {"average": score(mean, 3)}, seed=0)
    gap = difference(made, "open_llm", open_llm, "Avg.", trained=True)
    assert gap.over_seeds == pytest.approx(np.sqrt(2) * 2.0, rel=0.15) and gap.freedom == 3 * 39


def test_tasks_are_paired_unless_they_are_few(made):
    means, gaps = RNG.uniform(0, 100, 12), RNG.normal(5, 3, 12)
    tasks(made, "pi", means + gaps, 30)
    tasks(made, "yarn", means, 30)
    gap = difference(made, "ruler", ruler, "1k")
    assert ends(gap) == pytest.approx(bootstrap(gaps), abs=0.3) and gap.samples == 12
    made.records.clear()
    tasks(made, "pi", [50, 50], 4)
    tasks(made, "yarn", [40, 40], 4)
    assert ends(difference(made, "ruler", ruler, "1k"))[0] == pytest.approx(10 - 4 * np.sqrt(2))


@pytest.mark.parametrize("count", [1, 3, 8])
def test_losses_are_paired_by_text(made, count):
    gaps = RNG.normal(0.1, 0.05, count)
    texts(made, "pi", gaps)
    texts(made, "yarn", np.zeros(count))
    gap = difference(made, "perplexity", log_perplexity, "4k")
    assert gap.mean == pytest.approx(gaps.mean()) and gap.samples == count
    if count < 5:
        assert ABOVE.verdict(gap) == UNDECIDED and gap.interval().texts == pytest.approx(gaps)
    else:
        test = stats.ttest_1samp(gaps, 0)
        assert ABOVE.p(gap) == pytest.approx(test.pvalue)
        assert ends(gap) == pytest.approx(tuple(test.confidence_interval()))


def test_losses_of_seeds_and_texts_have_the_interval_of_the_tables(made):
    gaps = RNG.normal(0.1, 0.05, (3, 8)) + RNG.normal(0, 0.05, (3, 1))
    for seed, of_seed in enumerate(gaps):
        texts(made, "yarn", np.zeros(8), seed)
        texts(made, "pi", of_seed, seed)
    gap, table = difference(made, "perplexity", log_perplexity, "4k", trained=True), over_texts(gaps)
    assert (gap.samples, gap.seeds, gap.freedom) == (8, 3, 2)
    assert ends(gap) == pytest.approx((table.low, table.high))
