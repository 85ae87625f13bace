"""Whole texts are drawn from the records: the mean over texts of the mean over a text's windows."""

import numpy as np
import pytest

from analysis.beyond import whole_texts as texts
from analysis.results import Results
from figures.beyond import whole_texts
from tests.figures.test_style import check


def curve(row):
    by_text = {}
    for (title, _), losses in texts.windows(row.first).items():
        by_text.setdefault(title, []).append(losses)
    return np.mean([np.nanmean(losses, axis=0) for losses in by_text.values()], axis=0)


def test_whole_texts_draw_losses_and_then_differences_to_the_rival():
    results = Results.of("smollm2")
    panels = whole_texts.build(results).axes
    drawn = [{line.get_label(): line for line in axes.lines if len(line.get_xdata()) > 2} for axes in panels]
    check([[line.get_color() for line in curves.values()] for curves in drawn])
    rows = texts.runs(results, False, 2.0)
    rival, own, t_0 = rows.find("yarn", {}), rows.find("pi", {}), rows.find("dprope", {})
    assert drawn[0]["PI"].get_ydata() == pytest.approx(curve(own))
    assert drawn[1]["DPRoPE (t = 0)"].get_ydata() == pytest.approx(curve(t_0) - curve(rival))
