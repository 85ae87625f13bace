"""Losses on beginnings of books: which sets of texts there are, and what is paired with what."""

import numpy as np
import pytest
from scipy import stats

from analysis.beyond import loss_by_position


def book(*losses, title="A Book"):
    ranges = [{"start": 0, "end": 8192}, {"start": 8192, "end": 16384}]
    shape = {"length": 16384, "block": 4096, "ranges": ranges, "comparable": ["data", "length"]}
    return {"data": {title: "hash"}, "blocks": {title: list(losses)}} | shape


def test_each_set_of_texts_stands_apart_and_the_largest_is_first(recorder):
    recorder.add("loss_by_position", "ntk", **book(1, 1, 9, 9, title="Another"))
    for method in ("yarn", "pi"):
        recorder.add("loss_by_position", method, **book(1, 1, 2, 2))
    recorder.add("loss_by_position", "pi", seed=0, **book(1, 1, 2, 2))
    recorder.add(
        "loss_by_position",
        "dprope",
        options={"n_hat": 48},
        same_selection_as="x",
        **book(1, 1, 2, 2),
    )
    results = recorder.results()
    sets = loss_by_position.sets(results, 2.0)
    assert [[row.setting.method for row in rows.rows] for rows in sets] == [
        ["pi", "yarn"],
        ["ntk"],
        ["pi"],
    ]
    assert [rows.rows[0].trained for rows in sets] == [False, False, True]
    assert loss_by_position.measured_factors(results) == [2.0]


def test_differences_are_paired_by_text_and_seed(recorder):
    for seed, more in ((0, 1.0), (1, 3.0)):
        recorder.add("loss_by_position", "pi", seed=seed, **book(1, 1, 2 + more, 7 + more))
    recorder.add("loss_by_position", "yarn", seed=0, **book(0, 1, 2, 7))
    pi, yarn = loss_by_position.sets(recorder.results(), 2.0)[0].rows
    gap = loss_by_position.gap(pi, yarn)
    assert (gap.mean, gap.low, gap.texts) == (
        1,
        None,
        (1,),
    )  # one text, and one seed that both have
    assert loss_by_position.gap(pi, yarn, where="within L").mean == 0.5


@pytest.mark.parametrize("texts", [3, 8])
def test_excerpts_of_a_text_are_one_sample(recorder, texts):
    rng, means = np.random.default_rng(texts), {}
    for method in ("pi", "yarn"):
        losses = rng.normal(3, 0.5, (texts, 2, 4))
        names = [f"Part {text}{excerpt}" for text in range(texts) for excerpt in ("", " (1)")]
        blocks = dict(zip(names, losses.reshape(-1, 4).tolist()))
        recorder.add("loss_by_position", method, **book(0, 0, 0, 0) | {"blocks": blocks})
        means[method] = losses[:, :, 2:].mean(axis=(1, 2))
    pi, yarn = loss_by_position.sets(recorder.results(), 2.0)[0].rows
    for score, values in (
        (loss_by_position.level(pi), means["pi"]),
        (pi.scores(loss_by_position.ranges)["8–16k"], means["pi"]),
        (loss_by_position.gap(pi, yarn), means["pi"] - means["yarn"]),
    ):
        assert score.mean == pytest.approx(values.mean()) and score.texts == pytest.approx(values)
        interval = stats.ttest_1samp(values, 0).confidence_interval() if texts > 4 else (None, None)
        assert (score.low, score.high) == (
            interval if texts < 5 else pytest.approx(tuple(interval))
        )
