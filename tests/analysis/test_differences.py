"""The errors of a difference against ones drawn another way, and what records that hold less
leave; verdicts against closed testing, and against Student's and normal intervals."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from analysis import differences
from analysis.comparison import compared
from analysis.differences import (
    ABOVE,
    BELOW,
    CONTRADICTED,
    REPRODUCED,
    UNDECIDED,
    Region,
    holm,
)
from analysis.metrics import log_perplexity, open_llm
from analysis.scores import Score
from tests.analysis.recorder import on_texts, score

RNG = np.random.default_rng(3)


def difference(recorder, experiment, metrics, metric, trained=False):
    rows = compared(recorder.results(), experiment, trained)
    return differences.between(
        rows.find("pi"), rows.find("yarn"), experiment, metrics, metric, rows
    )


def ends(score):
    return score.low, score.high


@pytest.mark.parametrize("seeds", [(0, 0), (0, 7)])
def test_without_samples_seeds_are_the_error(recorder, seeds):
    """Paired where both have them, else by Welch's test of two independent samples."""
    means = {"pi": (10.0, 12.0, 17.0), "yarn": (9.0, 10.0, 14.0)}
    for first, (method, of_seeds) in zip(seeds, means.items()):
        for seed, mean in enumerate(of_seeds, first):
            recorder.add("open_llm", method, {"tasks": {"average": score(mean)}}, seed=seed)
    gap = difference(recorder, "open_llm", open_llm, "Avg.", trained=True)
    if seeds == (0, 0):
        test = stats.ttest_rel(*means.values())
        assert (gap.n, gap.seeds, gap.by_seed) == (None, 3, (1, 2, 3))
    else:
        test = stats.ttest_ind(*means.values(), equal_var=False)
        assert gap.by_seed == ()
    assert gap.mean == pytest.approx(2)
    assert ends(gap) == pytest.approx(tuple(test.confidence_interval()))


def test_without_samples_and_seeds_two_intervals_combine(recorder):
    for method, mean, low, high in (("pi", 10, 7, 12), ("yarn", 4, 3, 8)):
        average = {"mean": mean, "low": low, "high": high, "n": 9}
        recorder.add("open_llm", method, {"tasks": {"average": average}})
    gap = difference(recorder, "open_llm", open_llm, "Avg.")
    assert gap.mean == 6
    assert ends(gap) == pytest.approx((6 - 5, 6 + 5**0.5))  # √(3² + 4²), √(2² + 1²)
    average |= {"low": 4, "high": 4}  # one sample
    assert ends(difference(recorder, "open_llm", open_llm, "Avg.")) == (None, None)


def test_one_seed_takes_the_spread_of_settings_with_several(recorder):
    settings = [(method, seed) for method in ("clex", "dprope", "ntk") for seed in range(40)]
    for method, seed in settings:
        average = score(50 + 3 * seed + RNG.normal(0, 2.0))
        recorder.add("open_llm", method, {"tasks": {"average": average}}, seed=seed)
    for method, mean in (("pi", 50), ("yarn", 40)):
        recorder.add("open_llm", method, {"tasks": {"average": score(mean, 3)}}, seed=0)
    gap = difference(recorder, "open_llm", open_llm, "Avg.", trained=True)
    of_samples = 3 / stats.norm.ppf(0.975) * np.sqrt(2)
    over_seeds = np.sqrt(gap.errors[0] ** 2 - of_samples**2)
    assert over_seeds == pytest.approx(np.sqrt(2) * 2.0, rel=0.15)
    share = over_seeds**2 / gap.errors[0] ** 2
    assert gap.freedom == pytest.approx(2 * 39 / share**2)


def test_losses_are_paired_by_text(recorder):
    gaps = RNG.normal(0.1, 0.05, 8)
    for method, more in (("yarn", np.zeros(8)), ("pi", gaps)):
        losses = {f"Book {text}": float(3 + text + gap) for text, gap in enumerate(more)}
        recorder.add("perplexity", method, **on_texts({4096: losses}))
    gap = difference(recorder, "perplexity", log_perplexity, "4k")
    assert (gap.mean, gap.n) == (pytest.approx(gaps.mean()), 8)
    assert gap.texts == pytest.approx(gaps)
    test = stats.ttest_1samp(gaps, 0)
    assert ABOVE.p(gap) == pytest.approx(test.pvalue)
    assert ends(gap) == pytest.approx(tuple(test.confidence_interval()))


# Verdicts


def closed_testing(p):
    """Holm is the closure of Bonferroni's test: the most that any subset with a hypothesis makes of
    its least p."""
    sets = [s for size in range(1, len(p) + 1) for s in combinations(range(len(p)), size)]
    return np.array(
        [max(len(s) * min(p[j] for j in s) for s in sets if i in s) for i in range(len(p))]
    )


@pytest.mark.parametrize("n", [1, 2, 5])
def test_holm_is_closed_testing(n):
    for _ in range(50):
        p = RNG.uniform(0, 0.08, n)
        assert (p <= holm(p)).tolist() == (closed_testing(p) <= 0.05).tolist()


@pytest.mark.parametrize("region", [ABOVE, BELOW, Region(-1.0, 1.0), Region(high=0.5)])
def test_a_verdict_is_what_the_interval_says(region):
    for level in RNG.uniform(0.001, 0.1, 200):
        mean = RNG.normal(0, 3)
        freedom = RNG.choice([2, 7, np.inf])
        below, above = RNG.uniform(0.1, 1, 2)
        score = Score(mean).with_errors(below, above, freedom)
        times = stats.t.ppf(1 - level / 2, freedom)
        low, high = mean - times * below, mean + times * above
        edges = [edge for edge in (region.low, region.high) if low <= edge <= high]
        inside = region.low < low and high < region.high
        assert region.verdict(score, level) == (
            UNDECIDED if edges else REPRODUCED if inside else CONTRADICTED
        )


@pytest.mark.parametrize("score", [Score(1.0), Score(-1.0, n=3, texts=(-2.0, -1.0, 0.0))])
def test_a_number_without_an_interval_decides_nothing(score):
    assert ABOVE.verdict(score) == UNDECIDED
    assert ABOVE.p(score) == 1
