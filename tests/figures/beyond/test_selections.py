"""Loss and disturbance over n̂: nested selections alone, and the least of each."""

import pytest

from figures.beyond import selections
from tests.analysis.recorder import Recorder, score


def row(mean, disturbance, **options):
    return {
        "options": options,
        "beyond": score(mean),
        "disturbance": {"released": disturbance, "equation": 9.0},
    }


def test_both_stand_over_the_same_n_hat_and_the_least_are_marked(tmp_path):
    recorder = Recorder(tmp_path)
    nested = [
        row(3.5, 0.2, n_hat=0),
        row(3.1, 0.05, n_hat=8),
        row(3.2, 0.04, n_hat=16),
        row(3.9, 0.06, n_hat=64),
    ]
    others = [row(2.0, 0.01, n_hat=8, convention="equation"), row(2.0, 0.01, intervals=45)]
    recorder.add("selections", None, [*nested[::-1], *others], data={"A Book": "hash"})
    loss, moved = selections.build(recorder.results()).axes
    assert loss.get_shared_x_axes().joined(loss, moved)
    for axes, values, least in ((loss, [3.5, 3.1, 3.2, 3.9], 8), (moved, [200, 50, 40, 60], 16)):
        (curve,) = [line for line in axes.lines if len(line.get_xdata()) > 2]
        (marked,) = [line for line in axes.lines if len(line.get_xdata()) == 1]
        assert list(curve.get_xdata()) == [0, 8, 16, 64] and curve.get_ydata() == pytest.approx(
            values
        )
        assert list(marked.get_xdata()) == [least]
        assert any(f"n̂ = {least}" in text.get_text() for text in axes.texts)
    assert "A Book" in loss.get_title(loc="left")
