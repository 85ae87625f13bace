"""Loss by position: the same settings in each panel, as differences from YaRN."""

import numpy as np
import pytest

from analysis.beyond import books
from analysis.beyond import loss_by_position as losses
from analysis.results import NotMeasured, Results
from figures.beyond.loss_by_position import loss_by_position


def count_of_texts(rows):
    return len({*losses.texts(rows.first)})


def test_panels_hold_the_recorded_differences_of_the_same_methods_with_intervals():
    """Of the set on the most texts for each state and factor; what strays far is named above."""
    results = Results.of("smollm2")
    panels = [axes for axes in loss_by_position(results).axes if axes.lines]
    sets = [rows for rows in books.sets(results, "loss_by_position") if rows.find("yarn", {})]
    by_state = {}
    for rows in sorted(sets, key=lambda rows: -count_of_texts(rows)):
        by_state.setdefault((rows.rows[0].setting.factor, rows.rows[0].trained), rows)
    names = set()
    for axes, state in zip(panels, sorted(by_state), strict=True):
        rows = by_state[state]
        texts = count_of_texts(rows)
        assert f"{texts} text" in axes.get_title("left")
        curves = {line.get_label(): line for line in axes.lines if len(line.get_xdata()) > 2}
        looks = {(line.get_color(), line.get_linestyle()) for line in curves.values()}
        assert len(looks) == len(curves) <= 7
        assert axes.get_yscale() == "linear"
        recorded = {
            row.setting.name: np.array([bucket["mean"] for bucket in row.first.scores["buckets"]])
            for row in rows.rows
        }
        for name, line in curves.items():
            assert line.get_ydata() == pytest.approx(recorded[name] - recorded["YaRN"], abs=1e-9)
        assert len(axes.collections) == (len(curves) - 1 if texts >= 5 else 0)
        names |= curves.keys()
        far = " ".join(axes.get_title("left").split()).partition("off the scale: ")[2]
        for name in ("PI", "DPRoPE (t = 0)"):
            if name in recorded and name not in curves:
                assert f"{name} +{(recorded[name] - recorded['YaRN']).mean():.2f}" in far
    assert len(names) <= 7


def test_the_note_says_of_what_a_band_is(recorder):
    """Of a single text it is over seeds."""
    for seed in (0, 1):
        recorder.losses("yarn", {"A Book": [3.0, 3.0]}, seed=seed)
        recorder.losses("pi", {"A Book": [4.0 + seed / 10] * 2}, seed=seed)
    figure = loss_by_position(recorder.results())
    assert len(figure.axes[0].collections) == 1
    note = " ".join(figure.get_supxlabel().split())
    assert "over texts (five or more) and seeds (two or more)" in note


def test_yarn_beside_an_ablation_of_it_is_no_panel(recorder):
    recorder.losses("yarn", {"A Book": [3.0, 3.0]})
    recorder.losses("yarn", {"A Book": [3.1, 3.1]}, options={"attention_factor": 1.0})
    with pytest.raises(NotMeasured, match="and another method"):
        loss_by_position(recorder.results())
