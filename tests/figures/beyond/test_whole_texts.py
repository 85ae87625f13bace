"""Whole texts are drawn from the records, text by text."""

import numpy as np
import pytest

from analysis import perplexity_windows
from analysis.beyond import whole_texts as texts
from analysis.results import Results
from figures.beyond import whole_texts


def test_whole_texts_draw_the_difference_to_the_rival_text_by_text():
    results = Results.of("smollm2")
    panels = whole_texts.build(results).axes
    rows = texts.runs(results, False, 2.0)
    rival, own = rows.find("yarn", {}), rows.find("pi", {})
    (line,) = [line for line in panels[1].lines if line.get_label() == "PI"]
    ours, others = (perplexity_windows.windows(row.first) for row in (own, rival))
    books = [[ours[place] - others[place] for place in ours if place[0] == title] for title in own.first["data"]]
    assert line.get_ydata() == pytest.approx(np.mean([np.nanmean(of, axis=0) for of in books], axis=0))
