"""The paper's published numbers: its effects worked by hand."""

import math

import pytest

from analysis import published


def test_an_advantage_is_the_mean_over_both_models():
    # LongBench-E, s = 4, lengths above 4k: 30.195 - 28.56 and 31.72 - 31.095
    assert published.advantage("longbench_e", "pi", 4, "Avg.>L") == pytest.approx(
        (1.635 + 0.625) / 2
    )
    # RULER has s = 4 alone; CLEX has one factor for all.
    assert published.advantage("ruler", "pi", 2, "Avg.") is None
    by_hand = (75.357 - 50.737 + 75.753 - 54.48) / 2
    assert published.advantage("ruler", "clex", 4, "Avg.") == pytest.approx(by_hand, abs=0.01)
    assert (
        published.advantage("ruler", "ntk", 4, "Avg.")
        is published.advantage("ruler", "pi", 4, "16k")
        is None
    )


def test_a_misprinted_average_is_taken_of_its_parts():
    # PI at s = 2, 7B: 52.335, where 50.35 is printed.
    seven = (39.92 + 76.80 + 46.18 + 51.88) / 4 - 52.335
    thirteen = (38.10 + 80.09 + 60.16 + 64.68) / 4 - (37.68 + 80.25 + 59.44 + 63.99) / 4
    assert published.advantage("open_llm", "pi", 2, "Avg.") == pytest.approx((seven + thirteen) / 2)


def test_what_other_units_say_and_the_margins():
    both_models = math.log(7.12 / 7.39), math.log(5.91 / 6.06)
    assert published.perplexity_advantage("yarn", 2) == pytest.approx(sum(both_models) / 2)
    assert (
        published.perplexity_advantage("ntk", 2)
        is published.perplexity_advantage("yarn", 8)
        is None
    )
    values = published.ablated("intervals_open_llm", "Avg.")
    assert max(values.values()) - min(values.values()) == pytest.approx(60.9375 - 60.745)
