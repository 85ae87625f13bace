"""The paper's own effects, worked by hand from its tables."""

import math

import pytest

from analysis import effects


def test_rivals_are_those_of_the_papers_table():
    assert effects.rivals("open_llm") == ["pi", "yarn"] and effects.rivals("ruler") == ["pi", "yarn", "clex"]


def test_an_advantage_is_the_mean_over_both_models():
    # LongBench-E, s = 4, lengths above 4k: 30.195 - 28.56 and 31.72 - 31.095
    assert effects.advantage("longbench_e", "pi", 4, "Avg.>L") == pytest.approx((1.635 + 0.625) / 2)
    # RULER has s = 4 alone; CLEX has one factor for all.
    assert effects.advantage("ruler", "pi", 2, "Avg.") is None
    by_hand = (75.357 - 50.737 + 75.753 - 54.48) / 2
    assert effects.advantage("ruler", "clex", 4, "Avg.") == pytest.approx(by_hand, abs=0.01)
    assert effects.advantage("ruler", "ntk", 4, "Avg.") is effects.advantage("ruler", "pi", 4, "16k") is None


def test_a_misprinted_average_is_taken_of_its_parts():
    # PI at s = 2, 7B: 52.335, where 50.35 is printed.
    seven = (39.92 + 76.80 + 46.18 + 51.88) / 4 - 52.335
    thirteen = (38.10 + 80.09 + 60.16 + 64.68) / 4 - (37.68 + 80.25 + 59.44 + 63.99) / 4
    assert effects.advantage("open_llm", "pi", 2, "Avg.") == pytest.approx((seven + thirteen) / 2)


def test_perplexities_differ_by_their_logarithms():
    assert effects.perplexity_advantage("yarn", 2) == pytest.approx((math.log(7.12 / 7.39) + math.log(5.91 / 6.06)) / 2)
    assert effects.perplexity_advantage("ntk", 2) is None


def test_what_is_kept_is_of_ruler_at_the_one_factor_it_has():
    assert effects.kept_advantage(2) is None
    assert effects.kept_advantage(4) == pytest.approx(100 * (71.78 / 78.74 + 71.65 / 79.40) / 2)


def test_disturbance_and_perplexity_have_one_pair_the_other_way_round():
    # 8k: DPRoPE 6.71 and 7.12, PI 24.08 and 8.19, YaRN 25.55 and 7.39: of three, YaRN and PI change places.
    assert effects.rank_correlation(2) == pytest.approx(0.5)


def test_margins_are_the_spread_of_the_papers_numbers():
    values = effects.ablated("intervals_open_llm", "Avg.")
    assert set(values) == {90, 180, 360, 720}
    assert effects.spread(list(values.values())) == pytest.approx(60.9375 - 60.745)
    assert effects.time_resolution() == pytest.approx(0.005) and effects.time("train") == 1
