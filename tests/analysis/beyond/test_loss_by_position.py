"""Losses on beginnings of books: which text, which rows, and the disturbance of each setting."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.beyond import learned, loss_by_position
from analysis.results import Results
from core import rope
from core.errors import InputError
from experiments import base_models

SMOLLM2 = Results.of("smollm2")


def book(*losses, title="A Book", factor=2):
    length = int(8192 * factor)
    return {
        "data": {title: "hash"},
        "length": length,
        "block": 4096,
        "blocks": {title: list(losses)},
        "factor": factor,
    } | {
        "comparable": ["data", "length"],
        "ranges": [{"start": 0, "end": 8192}, {"start": 8192, "end": length}],
    }


def test_the_methods_that_the_model_compares_are_recorded_on_one_text():
    rows = learned.compared(SMOLLM2, 2.0).rows
    settings = [(row.setting.method, dict(row.setting.options)) for row in rows]
    for method, options in base_models.get("smollm2").comparison(2):
        not_yet = rope.METHODS[method].start or method in ("cope", "hardclip")  # half an hour each on two cores
        assert not_yet or settings.count((method, options)) == 1
    for row in rows:
        blocks = np.array(list(row.first["blocks"].values()))
        assert row.first["ranges"][2]["mean"] == pytest.approx(blocks[:, 96:].mean())
        assert not row.first["environment"]["commit"].endswith("with changes")


def test_the_fine_tuned_are_those_on_the_text_of_the_untrained(made):
    for method in ("yarn", "pi"):
        made.add("loss_by_position", method, **book(1, 1, 2, 2))
    made.add("loss_by_position", "ntk", **book(1, 1, 9, 9, title="Another"))
    made.add("loss_by_position", "pi", seed=0, **book(1, 1, 2, 2))
    made.add("loss_by_position", "yarn", seed=0, **book(1, 1, 2, 2, title="Another"))
    made.add("loss_by_position", "dprope", options={"n_hat": 48}, same_selection_as="x", **book(1, 1, 2, 2))
    untrained, tuned = loss_by_position.parts(made.results(), 2.0)
    assert [row.setting.method for row in untrained.rows] == ["pi", "yarn"]
    assert [row.setting.method for row in tuned.rows] == ["pi"]
    assert [record.reason for record in untrained.left_out] == ["data of Another"]


def test_fine_tuned_models_alone_are_a_comparison_too(made):
    made.add("loss_by_position", "pi", seed=0, **book(1, 1, 2, 2))
    (tuned,) = loss_by_position.parts(made.results(), 2.0)
    assert tuned.rows[0].trained and loss_by_position.measured_factors(made.results()) == [2.0]


def test_differences_are_paired_by_text_and_seeds_averaged_first(made):
    for seed, more in ((0, 1.0), (1, 3.0)):
        made.add("loss_by_position", "pi", seed=seed, **book(1, 1, 2 + more, 7 + more))
    made.add("loss_by_position", "yarn", seed=0, **book(0, 1, 2, 7))
    pi, yarn = loss_by_position.parts(made.results(), 2.0)[0].rows
    found = loss_by_position.gap(pi, yarn)
    assert (found.mean, found.low, found.texts) == (2, None, (2,))  # one text, and seeds that only one of them has
    assert loss_by_position.gap(pi, yarn, beyond=False).mean == 0.5


@pytest.mark.parametrize("texts", [1, 3, 8])
def test_excerpts_of_a_text_are_one_sample(made, texts):
    rng = np.random.default_rng(texts)
    means = {}
    for method in ("pi", "yarn"):
        losses = rng.normal(3, 0.5, (texts, 2, 4))
        names = [f"Part {text}{excerpt}" for text in range(texts) for excerpt in ("", " (1)")]
        blocks = dict(zip(names, losses.reshape(-1, 4).tolist()))
        made.add("loss_by_position", method, **book(0, 0, 0, 0) | {"blocks": blocks})
        means[method] = losses[:, :, 2:].mean(axis=(1, 2))
    pi, yarn = loss_by_position.parts(made.results(), 2.0)[0].rows
    for found, values in (
        (loss_by_position.level(pi), means["pi"]),
        (pi.scores(loss_by_position.beyond)["beyond"], means["pi"]),
        (pi.scores(loss_by_position.ranges)["8–16k"], means["pi"]),
        (loss_by_position.gap(pi, yarn), means["pi"] - means["yarn"]),
    ):
        assert found.mean == pytest.approx(values.mean()) and found.texts == pytest.approx(values)
        interval = stats.ttest_1samp(values, 0).confidence_interval() if texts > 4 else (None, None)
        assert (found.low, found.high) == (interval if texts < 5 else pytest.approx(tuple(interval)))


def test_a_difference_of_committed_records_is_that_of_each_book():
    """Three books, loss beyond L: by hand from the blocks, 128 tokens each."""
    rows = loss_by_position.untrained(SMOLLM2, 2.0)
    covered, yarn = rows.find("dprope-covered", {}), rows.find("yarn", {})
    found = loss_by_position.gap(covered, yarn)
    of = [pd.DataFrame(row.first["blocks"]).sort_index(axis=1)[64:].mean() for row in (covered, yarn)]
    assert found.texts == pytest.approx((of[0] - of[1]).to_numpy()) and found.low is None
    assert found.texts == pytest.approx([0.032, 0.015, 0.007], abs=5e-4)
    low, high = stats.ttest_1samp(found.texts, 0).confidence_interval()
    assert (low, high) == pytest.approx((-0.014, 0.050), abs=5e-4)  # what an interval over three books would be


def test_a_sample_of_texts_is_compared_beside_the_most_settings():
    """Student's interval over the texts, from the records' blocks alone."""
    rows = loss_by_position.sampled(SMOLLM2, 2.0)
    assert rows.first["data"] != loss_by_position.untrained(SMOLLM2, 2.0).first["data"]
    folder, rival = SMOLLM2.folder / "smollm2" / "beyond" / "loss_by_position", rows.find("yarn", {})
    for row in rows.rows:
        files = [folder / f"{each.first['file']}.json" for each in (row, rival)]
        ours, others = (pd.DataFrame(pd.read_json(file, typ="series")["blocks"]).loc[64:].mean() for file in files)
        expected = stats.ttest_1samp(ours - others, 0).confidence_interval()
        gap = loss_by_position.gap(row, rival)
        assert len(ours) == 20 and gap.mean == pytest.approx((ours - others).mean(), abs=1e-12)
        if row is not rival:
            assert (gap.low, gap.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("key", [None, "x", [1.0], [1.0, -1], [1.0, 0]])
def test_key_tokens_that_are_no_sum_and_count_are_refused(made, key):
    made.add("long_perplexity", "pi", texts={"A": {"beyond": {"key": key}}})
    with pytest.raises(InputError, match="key"):
        made.results().records("long_perplexity")
