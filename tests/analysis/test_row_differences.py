"""The errors of a difference against ones drawn another way, and what records that hold less
leave."""

import numpy as np
import pytest
from scipy import stats

from analysis import row_differences
from analysis.comparison import compared
from analysis.hypothesis_tests import ABOVE, UNDECIDED
from analysis.metrics import log_perplexity, open_llm
from tests.analysis.recorder import on_texts, score

RNG = np.random.default_rng(3)


def difference(recorder, experiment, metrics, metric, trained=False):
    rows = compared(recorder.results(), experiment, trained)
    return row_differences.between(
        rows.find("pi"), rows.find("yarn"), experiment, metrics, metric, rows
    )


def ends(estimate):
    interval = estimate.interval()
    return interval.low, interval.high


def test_without_samples_the_seeds_that_both_have_are_the_error(recorder):
    for method, means in (("pi", (10, 12, 17, 99)), ("yarn", (9, 10, 14))):
        for seed, mean in enumerate(means):
            recorder.add("open_llm", method, {"average": score(mean)}, seed=seed)
    gap = difference(recorder, "open_llm", open_llm, "Avg.", trained=True)
    assert (gap.mean, gap.below, gap.samples, gap.seeds) == (2, 0, None, 3)
    assert ends(gap) == pytest.approx(stats.t.interval(0.95, 2, loc=2, scale=stats.sem([1, 2, 3])))


def test_without_samples_and_seeds_two_intervals_combine(recorder):
    for method, mean, low, high in (("pi", 10, 7, 12), ("yarn", 4, 3, 8)):
        recorder.add(
            "open_llm", method, {"average": {"mean": mean, "low": low, "high": high, "n": 9}}
        )
    gap = difference(recorder, "open_llm", open_llm, "Avg.")
    assert (
        ends(gap) == pytest.approx((6 - 5, 6 + 5**0.5)) and gap.mean == 6
    )  # √(3² + 4²), √(2² + 1²)
    recorder.records["open_llm/001_yarn.json"]["scores"]["average"] |= {
        "low": 4,
        "high": 4,
    }  # one sample
    assert ends(difference(recorder, "open_llm", open_llm, "Avg.")) == (None, None)


def test_one_seed_takes_the_spread_of_settings_with_several(recorder):
    for method in ("clex", "dprope", "ntk", "original"):
        for seed in range(40):
            recorder.add(
                "open_llm",
                method,
                {"average": score(50 + 3 * seed + RNG.normal(0, 2.0))},
                seed=seed,
            )
    for method, mean in (("pi", 50), ("yarn", 40)):
        recorder.add("open_llm", method, {"average": score(mean, 3)}, seed=0)
    gap = difference(recorder, "open_llm", open_llm, "Avg.", trained=True)
    assert gap.over_seeds == pytest.approx(np.sqrt(2) * 2.0, rel=0.15) and gap.freedom == 3 * 39


@pytest.mark.parametrize("count", [1, 3, 8])
def test_losses_are_paired_by_text(recorder, count):
    gaps = RNG.normal(0.1, 0.05, count)
    for method, more in (("yarn", np.zeros(count)), ("pi", gaps)):
        losses = {f"Book {text}": float(3 + text + gap) for text, gap in enumerate(more)}
        recorder.add("perplexity", method, **on_texts({4096: losses}))
    gap = difference(recorder, "perplexity", log_perplexity, "4k")
    assert gap.mean == pytest.approx(gaps.mean()) and gap.samples == count
    if count < 5:
        assert ABOVE.verdict(gap) == UNDECIDED and gap.interval().texts == pytest.approx(gaps)
    else:
        test = stats.ttest_1samp(gaps, 0)
        assert ABOVE.p(gap) == pytest.approx(test.pvalue)
        assert ends(gap) == pytest.approx(tuple(test.confidence_interval()))
