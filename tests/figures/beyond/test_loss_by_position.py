"""Loss by position: the same settings in each panel, as differences from YaRN."""

import numpy as np
import pytest

from analysis.results import NotMeasured, Results
from figures.beyond.loss_by_position import loss_by_position

# Each method's loss minus YaRN's on the four blocks of a book, in the mean over books.
MINUS_YARN = {
    "yarn": [0.0, 0.0, 0.0, 0.0],
    "ntk": [0.01, 0.01, 0.02, 0.03],
    "mrrope-pro": [0.05, 0.05, 0.05, 0.05],
    "pi": [0.5, 0.5, 0.5, 0.5],
}


def curves(axes):
    return {
        line.get_label(): list(line.get_ydata()) for line in axes.lines if len(line.get_xdata()) > 2
    }


def test_panels_hold_differences_with_intervals_and_name_above_what_strays_far(recorder):
    """Of the set on the most texts for each state; an interval takes five of them."""
    for count, seed in ((5, None), (3, None), (4, 0)):
        for method, more in MINUS_YARN.items():
            books = {
                f"Book {i} of {count}": [3 + i + share * each for each in more]
                for i, share in enumerate(np.linspace(0.6, 1.4, count))
            }
            recorder.losses(method, books, starts=(0, 8192, 12288), seed=seed)
    panels = loss_by_position(recorder.results()).axes
    expected = (("without training, s = 2, 5 texts", 2), ("fine-tuned, s = 2, 4 texts", 0))
    for axes, (title, bands) in zip(panels, expected, strict=True):
        shown = " ".join(axes.get_title("left").split())
        assert shown == f"{title} off the scale: PI +0.50"
        assert curves(axes) == {
            "YaRN": [0, 0, 0],
            "NTK-aware": pytest.approx([0.01, 0.02, 0.03]),
            "MrRoPE-Pro": pytest.approx([0.05, 0.05, 0.05]),
        }
        assert len(axes.collections) == bands and axes.get_yscale() == "linear"


def test_each_round_of_fine_tunes_has_a_panel(recorder):
    """Also one of fewer methods than another."""
    for training, methods in ({}, ("yarn", "ntk", "pi")), ({"per_book": 1}, ("yarn", "ntk")):
        for method in methods:
            books = {f"Book {i}": [3 + each for each in MINUS_YARN[method]] for i in range(5)}
            recorder.losses(method, books, seed=0, training=training)
    shown = [axes.get_title("left") for axes in loss_by_position(recorder.results()).axes]
    of_books = "s = 2, 5 texts"
    assert shown[0].startswith(f"fine-tuned, {of_books}")
    assert shown[1:] == [f"fine-tuned, 1 sequence of each book,\n{of_books}"]


def test_the_same_methods_are_drawn_in_all_panels():
    panels = loss_by_position(Results.of("smollm2")).axes
    assert len({name for axes in panels for name in curves(axes)}) <= 7


def test_the_band_of_a_single_text_is_over_seeds(recorder):
    for seed in (0, 1):
        recorder.losses("yarn", {"A Book": [3.0, 3.0]}, seed=seed)
        recorder.losses("pi", {"A Book": [4.0 + seed / 10] * 2}, seed=seed)
    assert len(loss_by_position(recorder.results()).axes[0].collections) == 1


def test_yarn_beside_an_ablation_of_it_is_no_panel(recorder):
    recorder.losses("yarn", {"A Book": [3.0, 3.0]})
    recorder.losses("yarn", {"A Book": [3.1, 3.1]}, options={"attention_factor": 1.0})
    with pytest.raises(NotMeasured, match="and another method"):
        loss_by_position(recorder.results())
