"""Whole texts are drawn from the records, window by window."""

import numpy as np
import pytest

from analysis import perplexity_windows
from analysis.beyond import whole_texts as texts
from analysis.results import Results
from figures.beyond import whole_texts


def test_whole_texts_draw_the_difference_to_the_rival_window_by_window():
    results = Results.of("smollm2")
    panels = whole_texts.build(results).axes
    rows = texts.runs(results, False, 2.0)
    rival, own = rows.find("yarn", {}), rows.find("pi", {})
    (line,) = [line for line in panels[1].lines if line.get_label() == "PI"]
    gaps = np.nanmean(perplexity_windows.losses(own.first) - perplexity_windows.losses(rival.first), axis=0)
    assert line.get_ydata() == pytest.approx(gaps)
