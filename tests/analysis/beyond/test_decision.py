"""The rule that was fixed beforehand, at its borders."""

import pytest

from analysis.beyond import decision
from analysis.scores import Score


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.03, -0.001, decision.BETTER),
        (0.010, 0.030, decision.WORSE),
        (0.009, 0.030, decision.SLIGHTLY_WORSE),
        (-0.010, 0.010, decision.IMMATERIAL),
        (0.0, 0.004, decision.IMMATERIAL),
        (-0.011, 0.002, decision.UNDECIDED),
        (-0.002, 0.011, decision.UNDECIDED),
        (None, None, decision.UNDECIDED),
    ],
)
def test_each_interval_has_one_outcome(low, high, words):
    mean = 0.0 if low is None else (low + high) / 2
    assert decision.outcome(Score(mean, low, high)) == words
