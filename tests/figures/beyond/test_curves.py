"""Where the axis of a panel of curves ends."""

import pytest

from figures.beyond.curves import axis_end


@pytest.mark.parametrize(
    "means, end",
    [
        ([1, -3, 20], 6),
        ([0, 0.25, -1.5], 1.75),  # the baseline's is 0
        ([0, 0.25, -4.0], 0.5),  # one curve would make the other one flat
        ([0], 0.02),
    ],
)
def test_half_of_the_curves_are_in_the_inner_half_of_the_axis(means, end):
    assert axis_end(means) == pytest.approx(end)
