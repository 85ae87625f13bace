"""Loss by position: the best five settings of each set of texts, as differences from YaRN."""

import itertools

import numpy as np
import pytest
from matplotlib.text import Text

from analysis.beyond import loss_by_position as losses
from analysis.results import Results
from figures.beyond.loss_by_position import loss_by_position
from figures.kit import draw


def test_panels_hold_the_recorded_differences_of_the_best_five():
    results = Results.of("smollm2")
    length = results.context_length / 1024
    panels = [axes for axes in loss_by_position(results).axes if axes.lines]
    factors = losses.measured_factors(results)
    sets = [rows for factor in factors for rows in losses.sets(results, factor)]
    sets = [rows for rows in sets if rows.find("yarn", {}) and len(rows.rows) > 1]
    for axes, rows in zip(panels, sets, strict=True):
        curves = {line.get_label(): line for line in axes.lines if len(line.get_xdata()) > 2}
        looks = {(line.get_color(), line.get_linestyle()) for line in curves.values()}
        assert len(looks) == len(curves) <= 5
        assert any(list(line.get_xdata()) == [length] * 2 for line in axes.lines)
        recorded = {
            row.setting.name: np.array([bucket["mean"] for bucket in row.first.scores["buckets"]])
            for row in rows.rows
        }
        levels = {row.setting.name: losses.level(row).mean for row in rows.rows}
        worst = max(levels[name] for name in curves)
        others = {row.setting.name for row in rows.rows if not row.setting.options} - {*curves}
        assert all(levels[name] >= worst for name in others)
        for name, line in curves.items():
            assert line.get_ydata() == pytest.approx(recorded[name] - recorded["YaRN"])


@pytest.mark.parametrize("model", ["tiny", "smollm2"])
@pytest.mark.parametrize("name", ["loss_by_position", "training_loss"])
def test_names_at_the_ends_of_curves_do_not_hide_each_other(name, model):
    figure = draw.figure(name, Results.of(model))
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in axes.texts]
    boxes = [Text.get_window_extent(text).padded(-0.5) for text in texts]
    for (one, first), (other, second) in itertools.combinations(zip(texts, boxes), 2):
        assert not first.overlaps(second), (one, other)
