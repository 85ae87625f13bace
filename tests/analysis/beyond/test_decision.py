"""The rules that were fixed beforehand, at their borders."""

import pytest

from analysis.beyond import decision
from analysis.scores import Score


def score(low, high):
    return Score(0.0 if low is None else (low + high) / 2, low, high)


@pytest.mark.parametrize(
    "low, high, words",
    [
        (-0.03, -0.001, decision.BETTER),
        (0.010, 0.030, decision.WORSE),
        (0.002, 0.010, decision.SLIGHTLY_WORSE),
        (0.009, 0.030, decision.UNDECIDED),
        (0.009, 0.600, decision.UNDECIDED),
        (-0.010, 0.010, decision.IMMATERIAL),
        (0.0, 0.004, decision.IMMATERIAL),
        (-0.011, 0.002, decision.UNDECIDED),
        (-0.002, 0.011, decision.UNDECIDED),
        (None, None, decision.UNDECIDED),
    ],
)
def test_each_interval_of_loss_has_one_outcome(low, high, words):
    assert decision.by_loss(score(low, high)) == words


@pytest.mark.parametrize(
    "low, high, words",
    [
        (-2.0, -0.1, "DPRoPE retrieves better"),
        (0.5, 2.0, "YaRN retrieves better"),
        (0.1, 0.5, decision.SLIGHT),
        (-0.4, -0.1, decision.SLIGHT),
        (-0.5, 0.5, decision.NO_MATTER),
        (0.4, 2.0, decision.UNDECIDED),
        (-0.6, 0.1, decision.UNDECIDED),
        (None, None, decision.UNDECIDED),
    ],
)
def test_each_interval_of_keys_has_one_outcome(low, high, words):
    assert decision.by_keys(score(low, high)) == words


def test_an_outcome_names_the_settings_that_are_compared():
    assert decision.by_keys(score(-2, -1), "t = 0", "n̂ = 40") == "t = 0 retrieves better"
    assert decision.by_keys(score(1, 2), "t = 0", "n̂ = 40") == "n̂ = 40 retrieves better"
