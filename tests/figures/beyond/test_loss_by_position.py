"""Loss by position is drawn from the records, what the paper compares as it is and the others as differences."""

import numpy as np
import pytest

from analysis.beyond import learned
from analysis.beyond import loss_by_position as losses
from analysis.comparison import in_comparison
from analysis.results import Results
from core import rope
from figures.beyond import loss_by_position


def test_it_draws_one_line_per_method_and_marks_the_training_length():
    results = Results.of("smollm2")
    listed = in_comparison(results.model)
    found = [rows for factor in losses.measured_factors(results) for rows in losses.parts(results, factor)]
    parts = [rows.only(lambda row: listed(row) and not learned.start_of(row.setting)) for rows in found]
    shown = {}
    for axes in loss_by_position.build(results).axes:
        own = shown.setdefault(axes.get_title(loc="left"), {})
        own |= {line.get_label(): list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) > 2}
        assert any(list(line.get_xdata()) == [8, 8] for line in axes.lines) or not axes.get_visible()
    for part in parts:
        state = "fine-tuned" if part.rows[0].trained else "without training"
        loss = {row.setting: np.array([bucket["mean"] for bucket in row.first["buckets"]]) for row in part.rows}
        rival = loss[part.find("yarn", {}).setting]
        drawn = shown[f"{state}, s = {float(part.first['factor']):g}"]
        assert drawn.keys() == {setting.name for setting in loss}
        for setting, values in loss.items():
            above = rope.METHODS[setting.method].published or setting.method in (
                "original",
                "ntk",
                "dprope-significant",
            )
            expected = values if above and setting.plain("n_hat") else values - rival
            assert drawn[setting.name] == pytest.approx(expected)
