"""Loss by position: small multiples of the recorded curves."""

import numpy as np
import pytest

from analysis.beyond import learned
from analysis.beyond import loss_by_position as losses
from analysis.comparison import in_comparison
from analysis.results import Results
from figures.beyond import loss_by_position
from tests.figures.test_style import check


@pytest.mark.parametrize("model", ["smollm2", "tiny"])
def test_panels_hold_the_recorded_losses_and_those_after_the_first_their_difference_to_the_rivals(model):
    results = Results.of(model)
    listed, length = in_comparison(results.model), results.model.context_length / 1024
    axes = [panel for panel in loss_by_position.build(results).axes if panel.lines]
    shown, state = {}, None
    for panel in axes:
        curves = {line.get_label(): line for line in panel.lines if len(line.get_xdata()) > 2}
        check([[line.get_color() for line in curves.values()]])
        assert any(list(line.get_xdata()) == [length] * 2 for line in panel.lines)
        assert {text.get_text().replace("\n", " ").replace("\xa0", " ") for text in panel.texts} == {*curves, "L"}
        first = bool(panel.get_title(loc="left"))
        state = panel.get_title(loc="left") or state
        for name, line in curves.items():
            shown[state, name, first] = line.get_ydata()
    expected = {}
    for factor in losses.measured_factors(results):
        for rows in losses.parts(results, factor):
            state = "fine-tuned" if rows.rows[0].trained else "without training"
            count = len({name.partition(" (")[0] for name in rows.first["blocks"]})
            state += f", s = {factor:g}, {count} {'text' if count == 1 else 'texts'}"
            loss = {
                row.setting.name: np.array([bucket["mean"] for bucket in row.first["buckets"]])
                for row in rows.rows
                if listed(row) and not learned.start_of(row.setting)
            }
            expected |= {(state, name): (values, values - loss["YaRN"]) for name, values in loss.items()}
    assert {key[:2] for key in shown} == expected.keys()
    for (state, name, first), drawn in shown.items():
        assert drawn == pytest.approx(expected[state, name][0 if first else 1])
