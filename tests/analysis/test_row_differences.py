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
from tests.analysis.made import TASKS, on_texts, paired_bootstrap, score

RNG = np.random.default_rng(3)


def documents(made, method, right, seed=None, **more):
    """A record of four benchmarks, each with the same scores 0…1 by document."""
    scores = {name: score(100 * float(np.mean(right)), 5, len(right)) for name in (*TASKS, "average")}
    by_document = {task: [float(each) for each in right] for task in TASKS}
    made.add("open_llm", method, scores, seed=seed, by_document=by_document, **more)


def difference(made, experiment, metrics, metric, trained=False):
    rows = compared(made.results(), experiment, trained)
    return row_differences.between(rows.find("pi"), rows.find("yarn"), experiment, metrics, metric, rows)


def test_documents_are_paired(made):
    right = RNG.integers(0, 2, 50)
    other = np.where(RNG.random(50) < 0.2, 1 - right, right)
    documents(made, "pi", right)
    documents(made, "yarn", other)
    found = difference(made, "open_llm", open_llm, "TruthfulQA")
    low, high = paired_bootstrap(100.0 * (right - other))
    assert found.mean == pytest.approx(100 * np.mean(right - other)) and (found.samples, found.seeds) == (50, 1)
    assert (found.interval().low, found.interval().high) == pytest.approx((low, high), abs=1.5)
    whole = difference(made, "open_llm", open_llm, "Avg.")  # four benchmarks of the same: half the error
    assert whole.samples == 200 and whole.below == pytest.approx(found.below / 2, rel=0.15)


def test_records_of_different_numbers_of_documents_are_refused(made):
    documents(made, "pi", [1] * 20)
    documents(made, "yarn", [1] * 19)
    with pytest.raises(InputError, match="different numbers of samples"):
        difference(made, "open_llm", open_llm, "TruthfulQA")


def test_seeds_and_documents_are_two_errors(made):
    gaps = []
    for seed, shift in enumerate((0.0, 0.1, 0.3)):
        base = RNG.random(40) * 0.5
        documents(made, "yarn", base, seed)
        documents(made, "pi", base + shift, seed)
        gaps.append(100 * shift)
    found = difference(made, "open_llm", open_llm, "Avg.", trained=True)
    assert found.over_seeds == pytest.approx(np.std(gaps, ddof=1) / np.sqrt(3)) and found.freedom == 2
    assert found.below == pytest.approx(0, abs=1e-9)  # every document gains alike


def test_without_samples_the_seeds_that_both_have_are_the_error(made):
    for method, means in (("pi", (10, 12, 17, 99)), ("yarn", (9, 10, 14))):
        for seed, mean in enumerate(means):
            made.add("open_llm", method, {"average": score(mean)}, seed=seed)
    found = difference(made, "open_llm", open_llm, "Avg.", trained=True)
    assert (found.mean, found.below, found.samples, found.seeds) == (2, 0, None, 3)
    low, high = stats.t.interval(0.95, 2, loc=2, scale=stats.sem([1, 2, 3]))
    assert (found.interval().low, found.interval().high) == pytest.approx((low, high))


def test_without_samples_and_seeds_two_intervals_combine(made):
    for method, mean, low, high in (("pi", 10, 7, 12), ("yarn", 4, 3, 8)):
        made.add("open_llm", method, {"average": {"mean": mean, "low": low, "high": high, "n": 9}})
    found = difference(made, "open_llm", open_llm, "Avg.")
    interval = found.interval()
    assert (interval.low, interval.high) == pytest.approx((6 - 5, 6 + 5**0.5))  # √(3² + 4²), √(2² + 1²)
    assert found.mean == 6 and found.over_seeds == 0
    made.records["open_llm/001_yarn.json"]["scores"]["average"] |= {"low": 4, "high": 4}  # one sample
    assert difference(made, "open_llm", open_llm, "Avg.").interval().low is None


def test_one_seed_takes_the_spread_of_settings_with_several(made):
    spread = 2.0
    for method in ("clex", "dprope", "ntk", "original"):
        for seed in range(40):
            made.add("open_llm", method, {"average": score(50 + 3 * seed + RNG.normal(0, spread))}, seed=seed)
    for method, mean in (("pi", 50), ("yarn", 40)):
        made.add("open_llm", method, {"average": score(mean, 3)}, seed=0)
    found = difference(made, "open_llm", open_llm, "Avg.", trained=True)
    assert found.over_seeds == pytest.approx(np.sqrt(2) * spread, rel=0.15) and found.freedom == 3 * 39


def test_few_tasks_are_no_sample_of_themselves(made):
    for method, mean in (("pi", 50), ("yarn", 40)):
        tasks = {"1024": {task: score(mean) for task in "ab"}}
        made.add("ruler", method, {"lengths": {"1024": score(mean, 4)}, "average": score(mean), "tasks": tasks})
    found = difference(made, "ruler", ruler, "1k")
    assert found.interval().low == pytest.approx(10 - 4 * np.sqrt(2))


def test_tasks_are_paired(made):
    means = RNG.uniform(0, 100, 12)
    gaps = RNG.normal(5, 3, 12)
    for method, shift in (("pi", gaps), ("yarn", np.zeros(12))):
        tasks = {"1024": {f"task{index}": score(mean, n=4) for index, mean in enumerate(means + shift)}}
        average = score(float(np.mean(means + shift)), 30)
        made.add("ruler", method, {"lengths": {"1024": average}, "average": average, "tasks": tasks})
    found = difference(made, "ruler", ruler, "1k")
    low, high = paired_bootstrap(gaps)
    assert (found.interval().low, found.interval().high) == pytest.approx((low, high), abs=0.3) and found.samples == 12


@pytest.mark.parametrize("texts", [1, 3, 8])
def test_losses_are_paired_by_text(made, texts):
    gaps = RNG.normal(0.1, 0.05, texts)
    for method, more in (("yarn", np.zeros(texts)), ("pi", gaps)):
        losses = {f"Book {text}": float(3 + text + gap) for text, gap in enumerate(more)}
        made.add("perplexity", method, **on_texts({4096: losses}))
    found = difference(made, "perplexity", log_perplexity, "4k")
    assert found.mean == pytest.approx(gaps.mean()) and found.samples == texts
    interval = found.interval()
    if texts < 5:
        assert interval.low is None and ABOVE.verdict(found) == UNDECIDED and interval.texts == pytest.approx(gaps)
    else:
        test = stats.ttest_1samp(gaps, 0)
        assert ABOVE.p(found) == pytest.approx(test.pvalue)
        assert (interval.low, interval.high) == pytest.approx(tuple(test.confidence_interval()))


def test_losses_of_seeds_and_texts_have_the_interval_of_the_tables(made):
    gaps = RNG.normal(0.1, 0.05, (3, 8)) + RNG.normal(0, 0.05, (3, 1))
    for seed, of_seed in enumerate(gaps):
        for method, more in (("yarn", np.zeros(8)), ("pi", of_seed)):
            losses = {f"Book {text}": float(3 + text + gap) for text, gap in enumerate(more)}
            made.add("perplexity", method, seed=seed, **on_texts({4096: losses}))
    found = difference(made, "perplexity", log_perplexity, "4k", trained=True)
    assert (found.samples, found.seeds, found.freedom) == (8, 3, 2)
    table = over_texts(gaps)
    assert (found.interval().low, found.interval().high) == pytest.approx((table.low, table.high))
