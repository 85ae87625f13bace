"""What an engine is said to do follows from how far its losses lie from two others."""

import pytest

from tables.beyond.served import DROPPED, RIGHT, WRONG, verdict


@pytest.mark.parametrize(
    ("loss", "position", "served", "expected"),
    [
        (3.0009, 0.0009, "checkpoint", RIGHT),
        (2.9991, 0.0009, "F32", RIGHT),
        (3.002, 0.002, "checkpoint", WRONG),
        (3.0, 0.05, "checkpoint", WRONG),  # equal means of other positions
        (3.002, 0.002, "Q4_1", RIGHT),
        (3.02, 0.02, "Q4_1", WRONG),
        (3.4995, 0.4995, "checkpoint", DROPPED),
    ],
)
def test_verdicts(recorder, loss, position, served, expected):
    """The extended model has a loss of 3 in transformers, the unextended one of 3.5."""
    apart = {
        "transformers": {"of_means": loss - 3.0, "mean": position, "largest": 1.0},
        "unextended": {"of_means": loss - 3.5, "mean": abs(loss - 3.5), "largest": 1.0},
    }
    scores = {"apart_from": apart, "answer": {"served": served}}
    recorder.add("served", "yarn", scores)
    assert verdict(recorder.results().records("served")[0]) == expected
