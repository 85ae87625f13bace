"""Loss by position: the best five settings of each set of texts, as differences from YaRN."""

import numpy as np
import pytest

from analysis.beyond import loss_by_position as losses
from analysis.results import Results
from figures.beyond import loss_by_position


def test_panels_hold_the_recorded_differences_of_the_best_five():
    results = Results.of("smollm2")
    length = results.model.context_length / 1024
    panels = [axes for axes in loss_by_position.build(results).axes if axes.lines]
    sets = [
        rows for factor in losses.measured_factors(results) for rows in losses.sets(results, factor)
    ]
    sets = [rows for rows in sets if rows.find("yarn", {}) and len(rows.rows) > 1]
    for axes, rows in zip(panels, sets, strict=True):
        curves = {line.get_label(): line for line in axes.lines if len(line.get_xdata()) > 2}
        assert len({(line.get_color(), line.get_linestyle()) for line in curves.values()}) == len(
            curves
        )
        assert any(list(line.get_xdata()) == [length] * 2 for line in axes.lines)
        recorded = {
            row.setting.name: np.array([each["mean"] for each in row.first.scores["buckets"]])
            for row in rows.rows
        }
        for name, line in curves.items():
            assert line.get_ydata() == pytest.approx(recorded[name] - recorded["YaRN"])
        drawn = [losses.level(row).mean for row in rows.rows if row.setting.name in curves]
        others = [losses.level(row).mean for row in loss_by_position.best_rows(results, rows)]
        assert sorted(drawn) == others and len(drawn) <= 5
