"""Seeds and texts against SciPy."""

import numpy as np
import pytest
from scipy import stats

from analysis.scores import Score, over_seeds, over_texts, spread

RNG = np.random.default_rng(5)


def scores(*means, width=1.0):
    return [{"a": Score(mean, mean - width, mean + width, 5)} for mean in means]


@pytest.mark.parametrize("centre", [13, -13, 1.5])
def test_seeds_become_their_mean_with_an_interval_for_seeds_and_samples(centre):
    """It goes below 0 where that of a seed does."""
    means = np.array([-3.0, -1.0, 4.0]) + centre
    found = over_seeds(scores(*means))["a"]
    _, seeds = stats.t.interval(0.95, 2, scale=stats.sem(means))
    half = np.hypot(seeds, 1.0)
    expected = (centre, centre - half, centre + half)
    assert (found.mean, found.low, found.high) == pytest.approx(expected)
    assert (found.n, found.seeds) == (5, 3)


@pytest.mark.parametrize("texts", [5, 8, 20])
def test_one_seed_has_students_interval_over_texts(texts):
    losses = RNG.normal(3, 0.4, texts)
    found = over_texts([losses])
    low, high = stats.ttest_1samp(losses, 0).confidence_interval()
    assert (found.mean, found.low, found.high) == pytest.approx((losses.mean(), low, high))
    assert found.n == texts and found.freedom == pytest.approx(texts - 1)


@pytest.mark.parametrize("texts", [1, 3, 4])
def test_few_texts_have_no_interval_but_that_over_seeds(texts):
    losses = RNG.normal(3, 0.4, (3, texts))
    alone = over_texts(losses[:1])
    assert (
        (alone.low, alone.high) == (None, None)
        and alone.texts == tuple(losses[0])
        and "over seeds" not in spread(alone, 2)
    )
    found = over_texts(losses)
    low, high = stats.t.interval(0.95, 2, loc=losses.mean(), scale=stats.sem(losses.mean(axis=1)))
    assert (
        (found.low, found.high) == pytest.approx((low, high))
        and spread(found, 2).split("] ")[1].startswith("over seeds")
        and found.seeds == 3
    )
    assert found.texts == pytest.approx(losses.mean(axis=0))


@pytest.mark.parametrize("seeds", [1, 3])
def test_perplexities_are_averaged_in_nats(seeds):
    losses = RNG.normal(3, 0.4, (seeds, 8))
    runs = [{"4k": over_texts([of_seed]).exponential()} for of_seed in losses]
    found = over_seeds(runs)["4k"]
    nats = over_texts(losses)
    expected = tuple(np.exp([nats.mean, nats.low, nats.high]))
    assert (found.mean, found.low, found.high) == pytest.approx(expected)
    assert found.texts == pytest.approx(np.exp(losses.mean(axis=0)))


def test_what_resampling_cannot_change_has_no_interval():
    alone = Score.of({"mean": 39.3, "low": 39.3, "high": 39.3, "n": 1})
    assert (alone.low, alone.high, alone.n) == (None, None, 1) and alone.holds_zero
    wide = Score.of({"mean": 39.3, "low": 30.0, "high": 50.0, "n": 9})
    assert over_seeds([{"a": alone}, {"a": wide}])["a"].low is None
