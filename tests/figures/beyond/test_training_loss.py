"""Training losses minus YaRN's: a panel holds fine-tunes of the same number of steps."""

import itertools

import numpy as np
import pytest
from matplotlib.text import Text

from analysis.results import NotMeasured
from figures.beyond.training_loss import training_loss
from figures.kit import draw
from tests.analysis.recorder import LENGTH


def add(recorder, steps, seed, rate=1e-5, methods=("yarn", "pi")):
    """Fine-tunes on the same sequences; the loss of all but YaRN's grows by 0.1 a step above
    that."""
    for method in methods:
        above = 0.0 if method == "yarn" else 0.1
        losses = [3 + above * step for step in range(steps)]
        record = recorder.add(
            "finetune",
            method,
            {"losses": losses},
            data_facts={},
            length=2 * LENGTH,
            batch=1,
            steps=steps,
            learning_rate=rate,
        )
        record["run"]["seed"] = seed


def test_fine_tunes_of_any_number_of_steps_stand_in_a_panel_for_each(recorder):
    for seed, steps in enumerate((10, 10, 8, 7)):
        add(recorder, steps, seed)
    panels = draw.figure("training_loss", recorder.results()).axes
    # by hand: the means of steps 0 to 1, 2 to 3, …; of ten steps, the first quarters have three
    expected = {8: [0.05, 0.25, 0.45, 0.65], 10: [0.1, 0.4, 0.65, 0.85]}
    for axes, (steps, means), seeds in zip(panels, expected.items(), ("one", "2"), strict=True):
        assert f"{steps} steps of 1 × 16k tokens,\n" in axes.get_title("left")
        assert f"{seeds} seed" in axes.get_title("left")
        (quarters,) = axes.containers
        assert np.array(quarters[0].get_ydata(), float) == pytest.approx(means)


def test_titles_of_panels_are_whole_and_do_not_meet(recorder):
    for seed in range(4):
        add(recorder, 10 + seed, seed)
    figure = draw.figure("training_loss", recorder.results())
    figure.draw_without_rendering()
    boxes = [
        text.get_window_extent() for text in figure.findobj(Text) if "steps of" in text.get_text()
    ]
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


@pytest.mark.parametrize("steps, rate", [(7, 1e-5), (8, 2e-5)])
def test_fine_tunes_without_quarters_and_those_at_another_rate_than_yarns_are_not_drawn(
    recorder, steps, rate
):
    add(recorder, steps, 0, methods=["yarn"])
    add(recorder, steps, 0, rate, methods=["pi"])
    with pytest.raises(NotMeasured, match="8 steps or more"):
        training_loss(recorder.results())
